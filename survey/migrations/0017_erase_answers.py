"""The worker's role deletes the answers of a person who is being erased, unread.

Only of a respondent who is marked as erased, whose row the caller has locked: a page
save at the same moment is seen, or waits and is refused. On a cluster each statement is
of one person, and so of one shard.
"""

from django.db import migrations

from accounts.migration_operations import RunStatements

ERASE_ANSWERS = """
CREATE FUNCTION public.survey_erase_answers(of_administration bigint, person bigint)
RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    deleted bigint;
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM public.survey_respondent r
        WHERE r.id = person AND r.administration_id = of_administration
          AND r.erased_at IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'respondent % is not marked as erased', person
            USING ERRCODE = 'restrict_violation';
    END IF;
    DELETE FROM public.survey_response x
    WHERE x.administration_id = of_administration AND x.respondent_id = person;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END $$
"""


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("survey", "0016_erased_people")]

    operations = [
        RunStatements(
            postgresql=[
                ERASE_ANSWERS,
                # Who may call it stands in the grants of the primary.
                "REVOKE ALL ON FUNCTION"
                " public.survey_erase_answers(bigint, bigint) FROM PUBLIC",
            ]
        )
    ]
