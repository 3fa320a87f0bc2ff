-- Invites :each people in each of :schools schools, and lets about half of them
-- start. Each class has an hour of its own, in which four of five come; one
-- percent of all is withdrawn. Rows lie school by school, as rosters bring them.
INSERT INTO accounts_district (code, name)
SELECT 'm' || n, 'District ' || lpad(n::text, 3, '0')
FROM generate_series(1, greatest(:schools / 20, 1)) n;
INSERT INTO accounts_school (district_id, code, name)
SELECT d.id, 's' || n, 'School ' || lpad(n::text, 4, '0')
FROM generate_series(1, :schools) n
JOIN accounts_district d ON d.code = 'm' || (1 + n % greatest(:schools / 20, 1));
INSERT INTO survey_administration
    (name, role, opens_at, closes_at, published_id, coordinators_see_finished)
SELECT 'measured', 'student', now() - interval '14 days', now() + interval '7 days',
       published_id, false
FROM survey_administration WHERE role = 'student' LIMIT 1;
INSERT INTO survey_respondent
    (administration_id, school_id, grade, language, classroom, attributes, issue,
     code_digest, code_key_version, started_at, completed_at, withdrawn_at)
SELECT a.id, s.id, lpad(p.grade::text, 2, '0'), 'en', p.grade || 'A',
       '{"gender": "x", "lunch": "free"}', 1,
       sha256(('measured' || n)::bytea), 1,
       CASE WHEN p.comes THEN p.start END,
       CASE WHEN p.comes AND p.ends THEN p.start + p.takes END,
       CASE WHEN p.leaves THEN now() END
FROM (SELECT * FROM survey_administration WHERE name = 'measured') a,
LATERAL (SELECT id, row_number() OVER (ORDER BY id) AS nth
         FROM accounts_school WHERE code LIKE 's%') s,
LATERAL generate_series(1 + (s.nth - 1) * :each, s.nth * :each) n,
LATERAL (SELECT 4 + n % 9 AS grade, random() < 0.55 AS comes, random() < 0.92 AS ends,
         random() < 0.01 AS leaves, random() < 0.8 AS with_class,
         (8 + random() * 32) * interval '1 minute' AS takes) drawn,
LATERAL (SELECT drawn.*, date_trunc('day', now()) - interval '1 day'
         * (1 + CASE WHEN with_class THEN (s.nth * 7 + drawn.grade) % 12
                     ELSE floor(random() * 12) END)
         + interval '1 hour'
         * (14 + CASE WHEN with_class THEN (s.nth + drawn.grade * 3) % 7
                      ELSE floor(random() * 7) END)
         + random() * interval '20 minutes' AS start) p;
VACUUM (ANALYZE) survey_respondent;
CHECKPOINT;
