"""The database deletes starts without answers itself.

The worker's role may not read responses. It may call this function, which runs as
the owner, and learns only how many starts were deleted.
"""

from django.db import migrations, models

# The administration is locked first: reopening it waits, or is seen. No page is
# accepted after the closing, and a device keeps unsent ones for seven days: until
# then nothing is deleted, whatever the caller says.
# Then the respondents' rows: a page save holds FOR SHARE on its own. Each statement
# sees what was committed before it began, so an answer that was saved while this
# one searched keeps its respondent.
# It looks at the next `most` starts `after` a key, and returns the `last` key, or
# NULL after all of them.
FUNCTION = """
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
NAME = "public.survey_delete_empty_starts"
SIGNATURE = f"{NAME}(bigint, timestamptz, bigint, integer)"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        # Without parameters, so that no % is taken for one.
        schema_editor.execute(FUNCTION, params=None)
        # Who may call it, and nobody else, stands in the grants of the primary.
        schema_editor.execute(f"REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC")


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP FUNCTION {SIGNATURE}")


class Migration(migrations.Migration):
    dependencies = [("survey", "0035_school_counts")]

    operations = [
        migrations.AddField(
            "administration",
            "empty_starts_deleted_at",
            models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            "opencode",
            "empty_starts_deleted",
            models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.RunPython(add, remove),
    ]
