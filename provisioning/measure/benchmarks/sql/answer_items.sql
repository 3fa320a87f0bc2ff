-- Lets everyone of the administration 'measured' start, and answer each of :items,
-- except one in ten, who stops after half of them. One in thirty answers is skipped.
-- Rows lie as on a real day: 15,000 people of all schools answer at a time, each five
-- items on a page.
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
CREATE TEMPORARY TABLE answering AS
SELECT administration_id, id,
       (row_number() OVER (ORDER BY md5(id::text)) - 1) / 15000 AS crowd
FROM survey_respondent WHERE administration_id = :administration;
CREATE INDEX ON answering (crowd);
ANALYZE answering;
INSERT INTO :"partition"
    (administration_id, respondent_id, item_id, state, value, revision, saved_at)
SELECT r.administration_id, r.id, item,
       CASE WHEN skipped THEN 's' ELSE 'a' END,
       CASE WHEN NOT skipped THEN (1 + floor(random() * 5))::int::text END,
       1700000000000000 + r.id, now() - interval '1 hour'
FROM (
    SELECT crowd, page
    FROM generate_series(0, (SELECT max(crowd) FROM answering)) crowd
    CROSS JOIN generate_series(0, cardinality(ARRAY[:items]) - 1, 5) page
    ORDER BY crowd, page
) shown
CROSS JOIN LATERAL (
    SELECT administration_id, id, item, nth
    FROM answering
    CROSS JOIN unnest((ARRAY[:items]::bigint[])[page + 1:page + 5])
        WITH ORDINALITY i (item, nth)
    WHERE answering.crowd = shown.crowd
    ORDER BY id, nth
) r
CROSS JOIN LATERAL (SELECT random() + 0 * (r.id + item) < 0.03 AS skipped) drawn
WHERE r.id % 10 <> 0 OR page + nth <= :half;
SET maintenance_work_mem = '1GB';
ALTER TABLE :"partition" ADD CONSTRAINT :"key" :definition;
ALTER TABLE survey_response
    ATTACH PARTITION :"partition" FOR VALUES IN (:administration);
VACUUM (ANALYZE) survey_respondent;
VACUUM (ANALYZE) survey_response;
CHECKPOINT;
