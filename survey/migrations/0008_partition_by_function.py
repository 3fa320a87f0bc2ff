"""The database makes the place for an administration's responses itself.

The role of the console may change no table. It may call this function, which
runs as the owner and makes one partition for an administration that is there,
and nothing else. Names are written out with their schema, so that no temporary
table of the caller's can stand in for one of them.
"""

from django.db import migrations

# Made as a table and then attached: CREATE … PARTITION OF would lock the
# parent against the page saves of every other administration. The check tells
# ATTACH that there is nothing to scan. What still waits is another opening, or
# an index that is being built: after a second it gives up.
FUNCTION = """
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
# Everybody may call a new function, unless told otherwise. Who may, and nobody
# else, stands in the grants of the primary.
CLOSED = "REVOKE ALL ON FUNCTION public.survey_add_partition(bigint) FROM PUBLIC"
DROP = "DROP FUNCTION public.survey_add_partition(bigint)"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        # Without parameters, so that no % is taken for one.
        schema_editor.execute(FUNCTION, params=None)
        schema_editor.execute(CLOSED)


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("survey", "0007_count_changes")]

    operations = [migrations.RunPython(add, remove)]
