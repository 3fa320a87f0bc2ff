"""The worker's role destroys the answers of a closed administration, unread.

Functions that run as the tables' owner count them, digest them and empty the partition.
Each refuses where the administration is not marked, or where nothing may be destroyed:
so no role of the application can, whatever its code does. Emptying locks the partition
of this administration alone, where dropping it would lock the table of all saves.
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
# Without the key that is in the first digest, nobody can test a guess. The lock lets
# others read, and is held until the caller's transaction ends: what was digested is
# what is destroyed.
DIGEST = """
CREATE FUNCTION public.survey_digest_answers(
    of_administration bigint, after_person bigint, after_item bigint, most integer,
    before bytea,
    OUT digest bytea, OUT answers integer, OUT last_person bigint, OUT last_item bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET datestyle = 'ISO'
AS $$
DECLARE
    answer record;
BEGIN
    IF octet_length(before) < 32 OR NOT EXISTS (
        SELECT 1 FROM public.survey_administration a
        WHERE a.id = of_administration AND a.answers_destroyed_at IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'administration % is not marked', of_administration
            USING ERRCODE = 'restrict_violation';
    END IF;
    EXECUTE format(
        'LOCK TABLE public.%I IN SHARE MODE', 'survey_response_' || of_administration
    );
    digest := before;
    answers := 0;
    FOR answer IN
        SELECT x.respondent_id, x.item_id, jsonb_build_array(
            x.administration_id, x.respondent_id, x.item_id, x.state, x.value,
            x.revision, x.saved_at
        )::text AS line
        FROM public.survey_response x
        WHERE x.administration_id = of_administration
          AND (x.respondent_id, x.item_id) > (after_person, after_item)
        ORDER BY x.respondent_id, x.item_id LIMIT most
    LOOP
        digest := sha256(digest || convert_to(answer.line, 'UTF8'));
        answers := answers + 1;
        last_person := answer.respondent_id;
        last_item := answer.item_id;
    END LOOP;
END $$
"""
EMPTY = """
CREATE FUNCTION public.survey_destroy_answers(of_administration bigint)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM public.survey_administration a
        WHERE a.id = of_administration AND a.answers_destroyed_at IS NOT NULL
          AND a.closes_at < now() - interval '1 day'
    ) THEN
        RAISE EXCEPTION 'administration % is not marked', of_administration
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF EXISTS (
        SELECT 1 FROM public.survey_legalhold h
        WHERE h.administration_id = of_administration AND h.lifted_at IS NULL
    ) THEN
        RAISE EXCEPTION 'administration % is on hold', of_administration
            USING ERRCODE = 'restrict_violation';
    END IF;
    EXECUTE format('TRUNCATE TABLE public.%I', 'survey_response_' || of_administration);
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
                DIGEST,
                "REVOKE ALL ON FUNCTION public.survey_digest_answers"
                "(bigint, bigint, bigint, integer, bytea) FROM PUBLIC",
                EMPTY,
                "REVOKE ALL ON FUNCTION"
                " public.survey_destroy_answers(bigint) FROM PUBLIC",
            ]
        )
    ]
