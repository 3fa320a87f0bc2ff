"""The worker's role destroys the answers of a closed administration, unread.

Functions that run as the tables' owner count them, and digest them and empty their
partition. The second refuses unless the administration is marked, has been closed for a
day, and is not on hold. The worker's role sets the mark itself, so these checks protect
against mistakes of its code and against all other roles, not against somebody who has
this role. Emptying locks the partition of this administration alone, where
dropping it would lock the table of all saves.
"""

from django.db import migrations

from accounts.migration_operations import RunStatements

COUNT = """
CREATE FUNCTION public.survey_count_answers(of_administration bigint)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT count(*) FROM public.survey_response x
        WHERE x.administration_id = of_administration
    );
END $$
"""
# Digests and empties the partition at once, so what was digested is what is destroyed:
# its first lock lets others read, and nobody write. Whoever calls it chooses the key that
# is in the first digest, and gets the digest of all answers together: a guess that can
# be tested with it is one of a whole round's answers. One statement, without a limit of
# time if the caller has set none: 15 minutes for a hundred million answers, read in
# the order of their index. A hold that is placed meanwhile does not wait for it, and stops
# it. A hold on the state's round is on its modules.
DESTROY = """
CREATE FUNCTION public.survey_destroy_answers(
    of_administration bigint, digest_key bytea, tries integer,
    OUT digest bytea, OUT answers bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET datestyle = 'ISO'
SET lock_timeout = '0'
AS $$
DECLARE
    answer_table text := 'survey_response_' || of_administration;
    line text;
BEGIN
    IF octet_length(digest_key) < 32 OR NOT EXISTS (
        SELECT 1 FROM public.survey_administration a
        WHERE a.id = of_administration AND a.answers_destroyed_at IS NOT NULL
          AND a.closes_at < now() - interval '1 day'
    ) THEN
        RAISE EXCEPTION 'administration % is not marked', of_administration
            USING ERRCODE = 'restrict_violation';
    END IF;
    EXECUTE format('LOCK TABLE public.%I IN SHARE MODE', answer_table);
    digest := digest_key;
    answers := 0;
    FOR line IN
        SELECT jsonb_build_array(
            x.administration_id, x.respondent_id, x.item_id, x.state, x.value,
            x.revision, x.saved_at
        )::text
        FROM public.survey_response x
        WHERE x.administration_id = of_administration
        ORDER BY x.respondent_id, x.item_id
    LOOP
        digest := sha256(digest || convert_to(line, 'UTF8'));
        answers := answers + 1;
    END LOOP;
    -- A hold may have been placed meanwhile. From here on, new ones wait: the number is
    -- HOLDS of survey/database/advisory_locks.py.
    PERFORM pg_advisory_xact_lock_shared(7105007, held::integer)
    FROM public.survey_administration a, unnest(ARRAY[a.module_of_id, a.id]) held
    WHERE a.id = of_administration AND held IS NOT NULL;
    IF EXISTS (
        SELECT 1 FROM public.survey_legalhold h
        JOIN public.survey_administration a
          ON h.administration_id IN (a.id, a.module_of_id)
        WHERE a.id = of_administration AND h.lifted_at IS NULL
    ) THEN
        RAISE EXCEPTION 'administration % is on hold', of_administration
            USING ERRCODE = 'restrict_violation';
    END IF;
    -- Until the function ends.
    SET LOCAL lock_timeout = '100ms';
    FOR remaining IN REVERSE tries - 1 .. 0 LOOP
        BEGIN
            EXECUTE format('TRUNCATE TABLE public.%I', answer_table);
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            IF remaining = 0 THEN
                RAISE;
            END IF;
        END;
        PERFORM pg_sleep(0.2);
    END LOOP;
    RAISE EXCEPTION 'no try to empty % is allowed', answer_table;
END $$
"""


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("survey", "0019_retention")]

    operations = [
        RunStatements(
            postgresql=[
                # Who may call them stands in the grants of the primary.
                COUNT,
                "REVOKE ALL ON FUNCTION"
                " public.survey_count_answers(bigint) FROM PUBLIC",
                DESTROY,
                "REVOKE ALL ON FUNCTION public.survey_destroy_answers"
                "(bigint, bytea, integer) FROM PUBLIC",
            ]
        )
    ]
