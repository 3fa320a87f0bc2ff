-- Foreign keys to and from distributed tables would cross shards. What they promised
-- is counted by `manage.py check_references`. Codes are unique in survey_coderoute.
DO $$
DECLARE crossing record;
BEGIN
    FOR crossing IN
        SELECT conrelid::regclass AS source, conname FROM pg_constraint
        WHERE contype = 'f' AND conparentid = 0
          AND (confrelid = ANY (ARRAY[{distributed}]::regclass[])
               OR conrelid = ANY (ARRAY[{distributed}]::regclass[]))
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', crossing.source, crossing.conname);
    END LOOP;
END $$;
ALTER TABLE public.survey_respondent
    DROP CONSTRAINT survey_respondent_code_digest_key;
