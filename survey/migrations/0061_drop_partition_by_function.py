"""The database drops the partition of a removed administration itself.

The console's role may not change tables. It may call this function, which runs as
the owner and drops one partition: of an administration that is no longer there, has
no people and no responses.
"""

from django.db import migrations

# A page save holds its lock on the parent until it has committed. So this waits for
# the saves in flight, and those that come later wait for this; each look at the
# rows is a statement of its own, and sees what those saves committed. In a
# transaction with one snapshot it would not.
# The lock is on the parent, so that saves of all administrations wait: as long as
# this waits, and until the caller commits. It gives up after a tenth of a second.
FUNCTION = """
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
SIGNATURE = "public.survey_drop_partition(bigint)"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        # Without parameters, so that no % is taken for one.
        schema_editor.execute(FUNCTION, params=None)
        # Who may call it, and nobody else, stands in the grants of the primary.
        schema_editor.execute(f"REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC")


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP FUNCTION {SIGNATURE}")


class Migration(migrations.Migration):
    dependencies = [("survey", "0060_freeze_measures")]

    operations = [migrations.RunPython(add, remove)]
