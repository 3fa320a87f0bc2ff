"""The database tells which of some people have an answer.

The worker's role may not read responses. It may call this function, which runs as
the owner, and learns keys that it knows already.
"""

from django.db import migrations

# A look-up for each person: with EXISTS, the planner may read all responses instead.
# Not STABLE: the caller has locked the people, and needs what was committed by then.
FUNCTION = """
CREATE FUNCTION public.survey_answered_people(of_administration bigint, people bigint[])
RETURNS SETOF bigint
LANGUAGE sql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT person FROM unnest(people) AS person
    WHERE (
        SELECT 1 FROM public.survey_response x
        WHERE x.administration_id = of_administration AND x.respondent_id = person
        LIMIT 1
    ) IS NOT NULL
$$
"""
SIGNATURE = "public.survey_answered_people(bigint, bigint[])"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(FUNCTION, params=None)
        # Who may call it, and nobody else, stands in the grants of the primary.
        schema_editor.execute(f"REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC")


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP FUNCTION {SIGNATURE}")


class Migration(migrations.Migration):
    dependencies = [("survey", "0039_roster_undo")]

    operations = [migrations.RunPython(add, remove)]
