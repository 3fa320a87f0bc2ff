-- Answers every item for :people people who have not started, after the id :after.
BEGIN;
SET LOCAL lock_timeout = '10s';
CREATE TEMPORARY TABLE filled ON COMMIT DROP AS
    SELECT id FROM survey_respondent
    WHERE administration_id = :administration AND id > :after AND id % :left_out <> 0
      AND started_at IS NULL
    ORDER BY id LIMIT :people;
INSERT INTO :partition
    (administration_id, respondent_id, item_id, state, value, revision, saved_at)
SELECT :administration, filled.id, item,
       CASE WHEN skipped THEN 's' ELSE 'a' END,
       CASE WHEN NOT skipped THEN (1 + floor(random() * 5))::int::text END,
       1700000000000000 + filled.id, now() - random() * interval '20 days'
FROM filled
CROSS JOIN unnest(ARRAY[:items]::bigint[]) item
CROSS JOIN LATERAL (SELECT random() + 0 * (filled.id + item) < 0.03 AS skipped) drawn;
UPDATE survey_respondent SET started_at = now(), completed_at = now()
WHERE id IN (SELECT id FROM filled);
SELECT count(*), coalesce(max(id), 0) FROM filled;
COMMIT;
