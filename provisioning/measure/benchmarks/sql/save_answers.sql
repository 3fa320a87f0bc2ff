-- Saves a page of :count people again, of the administration 'measured', as a page does.
UPDATE survey_response SET saved_at = now(), revision = revision + 1
WHERE administration_id = (SELECT id FROM survey_administration WHERE name = 'measured')
  AND respondent_id IN (
      SELECT id FROM survey_respondent
      WHERE administration_id = (SELECT id FROM survey_administration
                                 WHERE name = 'measured') AND completed_at IS NULL
      ORDER BY id LIMIT :count
  );
