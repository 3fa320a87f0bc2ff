-- Citus makes the tables that it manages anew, and their sequences begin at 1.
DO $$
DECLARE keyed record;
BEGIN
    FOR keyed IN
        SELECT c.table_name AS name, c.column_name AS key
        FROM information_schema.columns c
        JOIN pg_dist_partition p ON p.logicalrelid = format('public.%I', c.table_name)::regclass
        WHERE c.table_schema = 'public' AND c.is_identity = 'YES'
    LOOP
        EXECUTE format(
            'SELECT setval(pg_get_serial_sequence(%L, %L), coalesce(max(%I), 0) + 1, false)
             FROM public.%I',
            'public.' || keyed.name, keyed.key, keyed.key, keyed.name
        );
    END LOOP;
END $$;
