-- pgbouncer refuses settings that come with a connection, so the role carries
-- them. Timeouts nest: lock < statement < pgbouncer's queue < gunicorn < nginx.
CREATE ROLE groundswell LOGIN CREATEDB;
ALTER ROLE groundswell SET lock_timeout = '1s';
ALTER ROLE groundswell SET statement_timeout = '3s';
GRANT pg_read_all_stats TO groundswell;
CREATE DATABASE groundswell OWNER groundswell;

-- Each database made from here on can count its statements.
\connect template1
CREATE EXTENSION pg_stat_statements;
GRANT EXECUTE ON FUNCTION pg_stat_statements_reset(oid, oid, bigint) TO groundswell;
