-- Lets no rebalancing move a shard before the end of the transaction, nor those
-- colocated with it; returns whether it lies on this node. Reading FOR SHARE does not:
-- Citus locks a shard against moving only for statements that write. The lock is for
-- the tables' owner.
CREATE FUNCTION public.survey_hold_shard(shard bigint)
RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- 5 is SHARE, as writes of Citus hold it.
    PERFORM lock_shard_metadata(5, ARRAY[shard]);
    -- In a statement of its own, which sees a move that the lock has waited for.
    RETURN EXISTS (
        SELECT FROM pg_dist_placement p
        JOIN pg_dist_local_group here ON here.groupid = p.groupid
        WHERE p.shardid = shard
    );
END $$;
