"""Let saves have the processor while answers are digested before they are destroyed.

The function of 0020, which rests after each millisecond of work for as long: reading a
hundred million answers took a whole core for a quarter of an hour. It rests for half
an hour at most. All else is as there, also who may call it.
"""

from django.db import migrations

from accounts.migration_operations import RunStatements

DESTROY = """
CREATE OR REPLACE FUNCTION public.survey_destroy_answers(
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
    reading_since timestamptz := clock_timestamp();
    pause double precision;
    rested double precision := 0;
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
        IF answers % 200 = 0 AND rested < 1800 THEN
            pause := least(0.1, extract(epoch FROM clock_timestamp() - reading_since));
            PERFORM pg_sleep(pause);
            rested := rested + pause;
            reading_since := clock_timestamp();
        END IF;
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

    dependencies = [("survey", "0025_check_declines")]

    operations = [RunStatements(postgresql=[DESTROY])]
