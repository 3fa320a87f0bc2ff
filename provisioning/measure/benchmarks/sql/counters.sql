-- What PostgreSQL has counted: statements of the respondents' pool alone, because
-- scheduled jobs of other roles may fall into the same second.
SELECT coalesce(sum(s.calls), 0),
       coalesce(sum(s.calls) FILTER (
           WHERE s.query ILIKE '%INSERT INTO survey_response%'), 0)
FROM pg_stat_statements s
JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database()
JOIN pg_roles r ON r.oid = s.userid AND r.rolname = 'taking';
SELECT d.xact_commit, w.wal_sync, w.wal_bytes
FROM pg_stat_database d CROSS JOIN pg_stat_wal w WHERE d.datname = current_database();
