"""On PostgreSQL each administration's responses are a table of their own.

The role of the console may change no table. It may call two functions, which run as
the owner: one makes the partition of an administration that is there, the other drops
the partition of one that is no longer there, has no people and no responses. Names are
written out with their schema, so that no temporary table of the caller's can stand in
for one of them.
"""

from django.db import migrations

from accounts.migration_operations import RunStatements

PARTITIONED = """
DROP TABLE survey_response;
CREATE TABLE survey_response (
    administration_id bigint NOT NULL,
    respondent_id bigint NOT NULL,
    item_id bigint NOT NULL,
    state varchar(1) NOT NULL,
    value text,
    revision bigint NOT NULL,
    saved_at timestamptz NOT NULL,
    PRIMARY KEY (administration_id, respondent_id, item_id),
    CONSTRAINT a_value_exactly_where_answered CHECK (
        (state = 'a' AND value IS NOT NULL)
        OR (state IN ('s', 'h') AND value IS NULL)
    )
) PARTITION BY LIST (administration_id);
"""
# Made as a table and then attached: CREATE … PARTITION OF would lock the
# parent against the page saves of every other administration. The check tells
# ATTACH that there is nothing to scan. What still waits is another opening, or
# an index that is being built: after a second it gives up.
ADD = """
CREATE FUNCTION public.survey_add_partition(administration bigint)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
    partition text := 'survey_response_' || administration;
BEGIN
    IF NOT EXISTS (
        SELECT FROM public.survey_administration WHERE id = administration
    ) THEN
        RAISE EXCEPTION 'there is no administration %', administration
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    EXECUTE format(
        'CREATE TABLE public.%I (
            LIKE public.survey_response INCLUDING ALL,
            CONSTRAINT of_one_administration CHECK (administration_id = %s)
        )',
        partition, administration
    );
    EXECUTE format(
        'ALTER TABLE public.survey_response
            ATTACH PARTITION public.%I FOR VALUES IN (%s)',
        partition, administration
    );
    EXECUTE format(
        'ALTER TABLE public.%I DROP CONSTRAINT of_one_administration', partition
    );
END $$
"""
# A page save holds its lock on the parent until it has committed. So this waits for
# the saves in flight, and those that come later wait for this; each look at the
# rows is a statement of its own, and sees what those saves committed. In a
# transaction with one snapshot it would not.
# The lock is on the parent, so that saves of all administrations wait: as long as
# this waits, and until the caller commits. It gives up after a tenth of a second.
DROP = """
CREATE FUNCTION public.survey_drop_partition(administration bigint)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    partition text := 'survey_response_' || administration;
    is_answered boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'one snapshot hides responses that were saved later'
            USING ERRCODE = 'invalid_transaction_state';
    END IF;
    IF EXISTS (SELECT FROM public.survey_administration WHERE id = administration)
    THEN
        RAISE EXCEPTION 'administration % is still there', administration
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_inherits
        JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'public.survey_response'::regclass AND relname = partition
    ) THEN
        RAISE EXCEPTION 'administration % has no partition', administration
            USING ERRCODE = 'undefined_table';
    END IF;
    LOCK TABLE ONLY public.survey_response IN ACCESS EXCLUSIVE MODE;
    IF EXISTS (
        SELECT FROM public.survey_respondent WHERE administration_id = administration
    ) THEN
        RAISE EXCEPTION 'administration % has people', administration
            USING ERRCODE = 'restrict_violation';
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', partition)
        INTO is_answered;
    IF is_answered THEN
        RAISE EXCEPTION 'administration % has responses', administration
            USING ERRCODE = 'restrict_violation';
    END IF;
    EXECUTE format('DROP TABLE public.%I', partition);
END $$
"""


class Migration(migrations.Migration):
    replaces = [
        ("survey", "0002_partition_responses"),
        ("survey", "0008_partition_by_function"),
        ("survey", "0061_drop_partition_by_function"),
    ]

    dependencies = [("survey", "0001_tables")]

    operations = [
        RunStatements(
            postgresql=[
                PARTITIONED,
                # Everybody may call a new function, unless told otherwise. Who may,
                # and nobody else, stands in the grants of the primary.
                ADD,
                "REVOKE ALL ON FUNCTION public.survey_add_partition(bigint) FROM PUBLIC",
                DROP,
                "REVOKE ALL ON FUNCTION public.survey_drop_partition(bigint) FROM PUBLIC",
            ]
        )
    ]
