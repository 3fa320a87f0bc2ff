"""The database returns the seats of starts without answers itself.

The worker's role may not read responses. It may call this function, which runs as
the owner, and learns only how many seats were returned.
"""

from django.db import migrations

# The respondents' rows are locked first: a page save holds FOR SHARE on its own.
# Each statement sees what was committed before it began, so an answer that was
# saved while the lock was waited for keeps its seat.
FUNCTION = """
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
# Who may call it, and nobody else, stands in the grants of the primary.
CLOSED = "REVOKE ALL ON FUNCTION public.survey_return_seats(timestamptz) FROM PUBLIC"
DROP = "DROP FUNCTION public.survey_return_seats(timestamptz)"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        # Without parameters, so that no % is taken for one.
        schema_editor.execute(FUNCTION, params=None)
        schema_editor.execute(CLOSED)


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("survey", "0025_open_codes")]

    operations = [migrations.RunPython(add, remove)]
