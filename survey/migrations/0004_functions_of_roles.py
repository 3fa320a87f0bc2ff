"""Database roles read and change by functions what their grants do not allow.

The functions run as the owner, and return only what the role needs.
"""

from django.db import migrations

from accounts.migration_operations import RunStatements

# The worker's role learns how many seats of starts without answers were returned.
# The respondents' rows are locked first: a page save holds FOR SHARE on its own.
# Each statement sees what was committed before it began, so an answer that was
# saved while the lock was waited for keeps its seat.
RETURN_SEATS = """
CREATE FUNCTION public.survey_return_seats(claimed_before timestamptz)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    people bigint[];
BEGIN
    SELECT array_agg(old.id) INTO people FROM (
        SELECT r.id
        FROM public.survey_opencodeseat s
        JOIN public.survey_respondent r ON r.id = s.respondent_id
        WHERE s.claimed_at < claimed_before AND NOT EXISTS (
            SELECT FROM public.survey_response x
            WHERE x.administration_id = r.administration_id
              AND x.respondent_id = r.id
        )
        LIMIT 1000
        FOR UPDATE OF r SKIP LOCKED
    ) old;
    SELECT array_agg(r.id) INTO people
    FROM public.survey_respondent r
    WHERE r.id = ANY (people) AND NOT EXISTS (
        SELECT FROM public.survey_response x
        WHERE x.administration_id = r.administration_id AND x.respondent_id = r.id
    );
    UPDATE public.survey_respondent SET withdrawn_at = coalesce(withdrawn_at, now())
    WHERE id = ANY (people);
    UPDATE public.survey_opencodeseat SET respondent_id = NULL, claimed_at = NULL
    WHERE respondent_id = ANY (people);
    RETURN coalesce(cardinality(people), 0);
END $$
"""

# The console's role learns how many starts of an open code have an answer, and
# nothing about people on rosters.
# A look-up for each start: with EXISTS, the planner may read all responses instead.
ANSWERED_STARTS = """
CREATE FUNCTION public.survey_answered_starts(code bigint)
RETURNS bigint
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT count((
        SELECT 1 FROM public.survey_response x
        WHERE x.administration_id = r.administration_id AND x.respondent_id = r.id
        LIMIT 1
    ))
    FROM public.survey_respondent r
    WHERE r.open_code_id = code
$$
"""

# The console's role learns the same of ten minutes in which at least 50 people began,
# so that it says nothing about one of them.
ANSWERED_IN_CROWD = """
CREATE FUNCTION public.survey_answered_in_crowd(code bigint, period bigint)
RETURNS bigint
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT count((
        SELECT 1 FROM public.survey_response x
        WHERE x.administration_id = r.administration_id AND x.respondent_id = r.id
        LIMIT 1
    ))
    FROM public.survey_respondent r
    WHERE r.open_code_id = code
        AND r.started_at >= to_timestamp(period * 600)
        AND r.started_at < to_timestamp(period * 600 + 600)
    HAVING count(*) >= 50
$$
"""

# The respondents' pool may not read identities. It learns what a message may say about
# one person: a name only where the administration allows names in messages.
# An address that is not plain ASCII is compared by the workers alone, which know
# how it was normalised; until then nothing is sent.
READ_FOR_MESSAGE = """
CREATE FUNCTION public.survey_read_for_message(person bigint)
RETURNS TABLE (
    administration_id bigint,
    district_id bigint,
    language text,
    school text,
    is_finished boolean,
    is_stopped boolean,
    name text,
    opens_at timestamptz,
    closes_at timestamptz,
    has_names boolean,
    has_codes boolean,
    first_language text
)
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT a.id, s.district_id, r.language, s.name,
        r.completed_at IS NOT NULL,
        r.withdrawn_at IS NOT NULL OR i.email ~ '[^ -~]' OR EXISTS (
            SELECT FROM public.survey_suppressedaddress x
            WHERE x.digest = encode(sha256(convert_to(lower(i.email), 'UTF8')), 'hex')
              AND x.reason IN ('opted out', 'complained')),
        CASE WHEN a.messages_have_names THEN i.given_name ELSE '' END,
        a.opens_at, a.closes_at, a.messages_have_names, a.messages_have_codes,
        p.definition::json -> 'languages' -> 0 ->> 'code'
    FROM public.survey_respondent r
    JOIN public.survey_identity i ON i.respondent_id = r.id
    JOIN public.survey_administration a ON a.id = r.administration_id
    JOIN public.survey_publishedsurvey p ON p.digest = a.published_id
    JOIN public.accounts_school s ON s.id = r.school_id
    WHERE r.id = person AND r.open_code_id IS NULL
$$
"""

# The worker's role learns only how many starts without answers were deleted.
# The administration is locked first: reopening it waits, or is seen. No page is
# accepted after the closing, and a device keeps unsent ones for seven days: until
# then nothing is deleted, whatever the caller says.
# Then the respondents' rows: a page save holds FOR SHARE on its own. Each statement
# sees what was committed before it began, so an answer that was saved while this
# one searched keeps its respondent.
# It looks at the next `most` starts `after` a key, and returns the `last` key, or
# NULL after all of them.
DELETE_EMPTY_STARTS = """
CREATE FUNCTION public.survey_delete_empty_starts(
    of_administration bigint, closed_before timestamptz, after bigint, most integer,
    OUT deleted integer, OUT last bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    people bigint[];
BEGIN
    deleted := 0;
    PERFORM FROM public.survey_administration a
    WHERE a.id = of_administration
      AND a.closes_at < least(closed_before, now() - interval '7 days')
    FOR SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT max(start.id), array_agg(start.id) FILTER (WHERE start.answer IS NULL)
    INTO last, people
    FROM (
        SELECT r.id, (
            SELECT 1 FROM public.survey_response x
            WHERE x.administration_id = of_administration AND x.respondent_id = r.id
            LIMIT 1
        ) AS answer
        FROM public.survey_respondent r
        WHERE r.administration_id = of_administration
          AND r.open_code_id IS NOT NULL AND r.id > after
        ORDER BY r.id LIMIT most
    ) start;
    SELECT array_agg(locked.id) INTO people FROM (
        SELECT r.id FROM public.survey_respondent r WHERE r.id = ANY (people)
        FOR UPDATE SKIP LOCKED
    ) locked;
    SELECT array_agg(r.id) INTO people
    FROM public.survey_respondent r
    WHERE r.id = ANY (people) AND (
        SELECT 1 FROM public.survey_response x
        WHERE x.administration_id = of_administration AND x.respondent_id = r.id
        LIMIT 1
    ) IS NULL;
    UPDATE public.survey_opencode c
    SET empty_starts_deleted = c.empty_starts_deleted + of_code.starts
    FROM (
        SELECT r.open_code_id, count(*) AS starts
        FROM public.survey_respondent r WHERE r.id = ANY (people) GROUP BY 1
    ) of_code
    WHERE c.id = of_code.open_code_id;
    UPDATE public.survey_opencodeseat SET respondent_id = NULL, claimed_at = NULL
    WHERE respondent_id = ANY (people);
    DELETE FROM public.survey_devicelogin WHERE respondent_id = ANY (people);
    DELETE FROM public.survey_respondent WHERE id = ANY (people);
    deleted := coalesce(cardinality(people), 0);
END $$
"""

# The worker's role learns which of some people, whose keys it knows, have an answer.
# A look-up for each person: with EXISTS, the planner may read all responses instead.
# Not STABLE: the caller has locked the people, and needs what was committed by then.
ANSWERED_PEOPLE = """
CREATE FUNCTION public.survey_answered_people(of_administration bigint, people bigint[])
RETURNS SETOF bigint
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT person FROM unnest(people) AS person
    WHERE (
        SELECT 1 FROM public.survey_response x
        WHERE x.administration_id = of_administration AND x.respondent_id = person
        LIMIT 1
    ) IS NOT NULL
$$
"""

# The console's role reads names, and so may not read responses. It learns free text
# without who wrote it. A page begins and ends at whole blocks of people, so that the
# difference of two pages is never the text of one person whom the role chose.
# On a cluster as well: the questions are read first, by a statement of their own.
READ_COMMENTS = """
CREATE FUNCTION public.survey_read_comments(
    of_administration bigint, of_item bigint, first_block bigint, at_least integer,
    OUT comments text[], OUT schools bigint[], OUT next_block bigint
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Not the caller's: with a size of their own, a page could begin at any person.
    size CONSTANT bigint := 128;
    first_person CONSTANT bigint := first_block * size;
    last_person bigint;
BEGIN
    IF NOT EXISTS (
        SELECT FROM public.survey_item i WHERE i.id = of_item AND i.kind = 'text'
    ) THEN
        RAISE insufficient_privilege USING MESSAGE = 'Only free text is read here';
    END IF;
    SELECT max(page.respondent_id) INTO last_person FROM (
        SELECT x.respondent_id FROM public.survey_response x
        WHERE x.administration_id = of_administration AND x.item_id = of_item
            AND x.state = 'a' AND x.respondent_id >= first_person
        ORDER BY x.respondent_id LIMIT at_least
    ) page;
    last_person := (last_person / size + 1) * size - 1;
    SELECT array_agg(DISTINCT x.value), array_agg(DISTINCT r.school_id)
    INTO comments, schools
    FROM public.survey_response x
    JOIN public.survey_respondent r ON r.id = x.respondent_id
    WHERE x.administration_id = of_administration AND x.item_id = of_item
        AND x.state = 'a' AND x.respondent_id BETWEEN first_person AND last_person
        AND r.administration_id = of_administration
        AND r.opted_out_at IS NULL AND r.withdrawn_at IS NULL;
    SELECT min(x.respondent_id) / size INTO next_block FROM (
        SELECT y.respondent_id FROM public.survey_response y
        WHERE y.administration_id = of_administration AND y.item_id = of_item
            AND y.state = 'a' AND y.respondent_id > last_person
        ORDER BY y.respondent_id LIMIT 1
    ) x;
END $$
"""

FUNCTIONS = {
    "survey_return_seats(timestamptz)": RETURN_SEATS,
    "survey_answered_starts(bigint)": ANSWERED_STARTS,
    "survey_answered_in_crowd(bigint, bigint)": ANSWERED_IN_CROWD,
    "survey_read_for_message(bigint)": READ_FOR_MESSAGE,
    "survey_delete_empty_starts(bigint, timestamptz, bigint, integer)": DELETE_EMPTY_STARTS,
    "survey_answered_people(bigint, bigint[])": ANSWERED_PEOPLE,
    "survey_read_comments(bigint, bigint, bigint, integer)": READ_COMMENTS,
}


class Migration(migrations.Migration):
    replaces = [
        ("survey", "0026_return_seats"),
        ("survey", "0029_answered_starts"),
        ("survey", "0033_read_people_for_messages"),
        ("survey", "0036_empty_starts"),
        ("survey", "0040_answered_people"),
        ("survey", "0064_read_comments"),
        ("survey", "0067_answered_in_crowd"),
    ]

    dependencies = [("survey", "0003_freeze_published_surveys")]

    operations = [
        RunStatements(
            postgresql=[
                *FUNCTIONS.values(),
                # Who may call them, and nobody else, stands in the grants of the
                # primary.
                *(
                    f"REVOKE ALL ON FUNCTION public.{signature} FROM PUBLIC"
                    for signature in FUNCTIONS
                ),
            ]
        )
    ]
