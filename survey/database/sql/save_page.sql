-- Saves one page on the node of its shard: the coordinator hands the whole call over.
-- The INSERT ... SELECT of survey/taking/storage.py would be planned once for each of
-- the shards, and its join with the administration runs on all of them.
-- The last statement writes to the shard directly. So the shard is held first: where it
-- was moved meanwhile, the old copy is there for some seconds more, and would take the
-- answers with it. The browser then sends them again.
CREATE FUNCTION public.survey_save_page(
    person bigint, administration bigint, of_issue integer, new_revision bigint,
    items bigint[], states text[], texts text[],
    seen bigint[], has_seen_all boolean
)
RETURNS timestamptz
LANGUAGE plpgsql
SET citus.enable_manual_changes_to_shards = on
AS $$
DECLARE
    written integer := 0;
    at timestamptz := now();
    shard bigint := get_shard_id_for_distribution_column('public.survey_response', person);
BEGIN
    IF NOT public.survey_hold_shard(shard) THEN
        RAISE 'The shard of this person was moved.' USING ERRCODE = 'serialization_failure';
    END IF;
    PERFORM 1
    FROM public.survey_respondent r
    JOIN public.survey_administration a ON a.id = r.administration_id
    WHERE r.id = person AND r.administration_id = administration AND r.issue = of_issue
      AND r.completed_at IS NULL AND r.withdrawn_at IS NULL
      AND at < a.closes_at + interval '10 minutes'
    FOR SHARE OF r;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    EXECUTE format($sql$
    INSERT INTO %s AS x
        (administration_id, respondent_id, item_id, state, value, revision, saved_at)
    SELECT $2, $1, i.item_id, i.state, i.value, $3, $9
    FROM unnest($4, $5, $6) i (item_id, state, value)
    ON CONFLICT (administration_id, respondent_id, item_id)
        DO UPDATE SET state = excluded.state, value = excluded.value,
            saved_at = excluded.saved_at, revision = CASE
            WHEN x.revision < excluded.revision
              AND (x.revision = ANY ($7)
                OR $8
                OR (x.revision & 1048575) = (excluded.revision & 1048575))
            THEN excluded.revision END
        WHERE x.revision <> excluded.revision
    $sql$,
    'public.survey_response_' || shard
    )
    USING person, administration, new_revision, items, states, texts, seen, has_seen_all, at;
    GET DIAGNOSTICS written = ROW_COUNT;
    IF written < cardinality(items) THEN
        RETURN NULL;
    END IF;
    RETURN at;
END $$;
