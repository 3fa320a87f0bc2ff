"""The database counts the starts with an answer in crowded minutes of an open code.

The console's role may not read responses. It may call this function, which runs as
the owner, and learns a number of ten minutes in which at least 50 people began, so
that it says nothing about one of them.
"""

from django.db import migrations

# A look-up for each start: with EXISTS, the planner may read all responses instead.
FUNCTION = """
CREATE FUNCTION public.survey_answered_in_crowd(code bigint, period bigint)
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
        AND r.started_at >= to_timestamp(period * 600)
        AND r.started_at < to_timestamp(period * 600 + 600)
    HAVING count(*) >= 50
$$
"""
# Who may call it, and nobody else, stands in the grants of the primary.
CLOSED = (
    "REVOKE ALL ON FUNCTION public.survey_answered_in_crowd(bigint, bigint) FROM PUBLIC"
)
DROP = "DROP FUNCTION public.survey_answered_in_crowd(bigint, bigint)"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(FUNCTION, params=None)
        schema_editor.execute(CLOSED)


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("survey", "0066_roster_sheet")]

    operations = [migrations.RunPython(add, remove)]
