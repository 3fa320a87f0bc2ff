-- What moves is written to each index.
UPDATE accounts_schoollisting
SET latitude = latitude + 0.0001, contact_phone = '555 0134'
WHERE school_id IN (:ids);
