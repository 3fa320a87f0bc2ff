-- One open administration with people. The rows of other tables are not
-- tested: no foreign key is checked.
SET session_replication_role = replica;
INSERT INTO survey_administration (id, name, published_id, role, opens_at, closes_at)
VALUES ({administration}, 'control', 'none', 'student', now(), now() + '1 day');
INSERT INTO survey_respondent (id, administration_id, school_id, grade, language,
    attributes, issue, code_digest, code_key_version, started_at)
SELECT n, {administration}, 0, '', '', '{{}}', 1, decode(lpad(n::text, 64, '0'), 'hex'),
    1, now()
FROM generate_series(1, {people}) n;
CREATE TABLE survey_response_control PARTITION OF survey_response
FOR VALUES IN ({administration});
