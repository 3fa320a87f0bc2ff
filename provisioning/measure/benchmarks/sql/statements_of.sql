-- How many statements were executed in :database, by all roles.
SELECT coalesce(sum(s.calls), 0)
FROM pg_stat_statements s
JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = :'database';
