-- Rosters join their temporary tables with people: Citus reads the people. And foreign
-- keys connect most tables of the coordinator: Citus refuses to write one of them after
-- a statement of the same transaction was sent over parallel connections.
DO $$
DECLARE staff name;
BEGIN
    FOREACH staff IN ARRAY ARRAY['groundswell', 'console', 'worker'] LOOP
        EXECUTE format($sql$
            ALTER ROLE %I SET citus.local_table_join_policy TO 'prefer-distributed'
        $sql$, staff);
        EXECUTE format($sql$
            ALTER ROLE %I SET citus.multi_shard_modify_mode TO 'sequential'
        $sql$, staff);
    END LOOP;
END $$;
