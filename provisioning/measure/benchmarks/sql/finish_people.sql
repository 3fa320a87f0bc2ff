-- Starts and finishes :count people, drawn by the text :salt.
WITH chosen AS (
    SELECT id FROM survey_respondent
    WHERE administration_id = (SELECT id FROM survey_administration
                               WHERE name = 'measured')
      AND started_at IS NULL AND withdrawn_at IS NULL
    ORDER BY md5(id::text || :'salt') LIMIT :count
) UPDATE survey_respondent SET started_at = now(), completed_at = now()
WHERE id IN (SELECT id FROM chosen);
