"""The database counts the starts of an open code that have an answer.

The console's role may not read responses. It may call this function, which runs as
the owner, and learns only a number for each open code, and nothing about people on
rosters.
"""

from django.db import migrations

# A look-up for each start: with EXISTS, the planner may read all responses instead.
FUNCTION = """
CREATE FUNCTION public.survey_answered_starts(code bigint)
RETURNS bigint
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT count((
        SELECT 1 FROM public.survey_response x
        WHERE x.administration_id = r.administration_id AND x.respondent_id = r.id
        LIMIT 1
    ))
    FROM public.survey_respondent r
    WHERE r.open_code_id = code
$$
"""
# Who may call it, and nobody else, stands in the grants of the primary.
CLOSED = "REVOKE ALL ON FUNCTION public.survey_answered_starts(bigint) FROM PUBLIC"
DROP = "DROP FUNCTION public.survey_answered_starts(bigint)"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(FUNCTION, params=None)
        schema_editor.execute(CLOSED)


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("survey", "0028_starts_of_each_open_code")]

    operations = [migrations.RunPython(add, remove)]
