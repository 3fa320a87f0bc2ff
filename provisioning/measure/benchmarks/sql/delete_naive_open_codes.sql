SET lock_timeout = '5s';
DROP SCHEMA IF EXISTS bench_open_codes CASCADE;
