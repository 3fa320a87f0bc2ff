-- Lets everyone of the administration 'measured' start, and answer each of :items,
-- except one in ten, who stops after half of them. One in thirty answers is skipped.
-- Rows lie as on a real day: person by person, people of all schools mixed.
SET statement_timeout = 0;
UPDATE survey_administration
SET subgroups = '{"gender": ["x", "y"], "lunch": ["free", "paid"]}'
WHERE name = 'measured';
UPDATE survey_respondent SET
    attributes = jsonb_build_object(
        'gender', CASE id % 2 WHEN 0 THEN 'x' ELSE 'y' END,
        'lunch', CASE id % 3 WHEN 0 THEN 'free' ELSE 'paid' END),
    started_at = coalesce(started_at, now() - interval '1 day'),
    completed_at = CASE WHEN id % 10 <> 0 THEN now() - interval '1 hour' END
WHERE administration_id = (SELECT id FROM survey_administration WHERE name = 'measured');
SELECT survey_add_partition(id) FROM survey_administration WHERE name = 'measured';
-- Its key is made at the end: 120 million rows in any order took half an hour with it.
SELECT id AS administration, 'survey_response_' || id AS partition
FROM survey_administration WHERE name = 'measured' \gset
SELECT conname AS key, pg_get_constraintdef(oid) AS definition
FROM pg_constraint WHERE conrelid = :'partition'::regclass AND contype = 'p' \gset
ALTER TABLE survey_response DETACH PARTITION :"partition";
ALTER TABLE :"partition" DROP CONSTRAINT :"key";
INSERT INTO :"partition"
    (administration_id, respondent_id, item_id, state, value, revision, saved_at)
SELECT r.administration_id, r.id, item,
       CASE WHEN skipped THEN 's' ELSE 'a' END,
       CASE WHEN NOT skipped THEN (1 + floor(random() * 5))::int::text END,
       1700000000000000 + r.id, now() - interval '1 hour'
FROM (
    SELECT administration_id, id FROM survey_respondent
    WHERE administration_id = (SELECT id FROM survey_administration
                               WHERE name = 'measured')
    ORDER BY md5(id::text)
) r
CROSS JOIN LATERAL unnest(ARRAY[:items]::bigint[]) WITH ORDINALITY i (item, nth)
CROSS JOIN LATERAL (SELECT random() + 0 * (r.id + item) < 0.03 AS skipped) drawn
WHERE r.id % 10 <> 0 OR nth <= :half;
SET maintenance_work_mem = '1GB';
ALTER TABLE :"partition" ADD CONSTRAINT :"key" :definition;
ALTER TABLE survey_response
    ATTACH PARTITION :"partition" FOR VALUES IN (:administration);
VACUUM (ANALYZE) survey_respondent;
VACUUM (ANALYZE) survey_response;
CHECKPOINT;
