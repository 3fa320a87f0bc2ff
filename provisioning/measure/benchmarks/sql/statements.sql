-- All statements but the superuser's, as a JSON list.
SELECT coalesce(json_agg(found), '[]') FROM (
    SELECT r.rolname AS role, s.query, s.calls, s.rows, s.total_exec_time AS total
    FROM pg_stat_statements s
    JOIN pg_database d ON d.oid = s.dbid
    JOIN pg_roles r ON r.oid = s.userid
    WHERE d.datname = current_database() AND r.rolname <> 'postgres'
) found;
