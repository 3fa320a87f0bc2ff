"""Declare the standard subgroups, and those that administrations already hold.

Columns that identify people stay undeclared, and exports leave them out: those
with more than 50 values, and those in which most values belong to one person.
"""

from django.db import migrations

from survey.administrations.subgroups import (
    LONGEST_VALUE,
    MAX_VALUES,
    default_subgroups,
)
from survey.rosters.columns import squeeze

# Each of these gives rows of administration, column, value and people.
COUNT = {
    "postgresql": """
        SELECT r.administration_id, e.key, e.value, count(*)
        FROM survey_respondent r, jsonb_each_text(r.attributes) e
        WHERE r.attributes <> '{}' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        """,
    "sqlite": """
        SELECT r.administration_id, e.key, e.value, count(*)
        FROM survey_respondent r, json_each(r.attributes) e
        GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        """,
}


def declare(apps, schema_editor):
    held = {}
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(COUNT[schema_editor.connection.vendor])
        for administration, column, value, people in cursor:
            columns = held.setdefault(administration, {})
            columns.setdefault(column, {})[str(value)] = people
    for administration in apps.get_model("survey", "Administration").objects.all():
        administration.subgroups = with_defaults(held.get(administration.pk, {}))
        administration.save(update_fields=["subgroups"])


def with_defaults(columns):
    subgroups = {squeeze(name): (name, of) for name, of in default_subgroups().items()}
    for name, counts in columns.items():
        _, standard = subgroups.get(squeeze(name), ("", []))
        values = list(dict.fromkeys((*counts, *standard)))
        is_unique = not standard and 2 * len(counts) > sum(counts.values())
        if not is_unique and len(counts) <= MAX_VALUES:
            if max(map(len, counts)) <= LONGEST_VALUE:
                subgroups[squeeze(name)] = (name, values[:MAX_VALUES])
    return dict(subgroups.values())


class Migration(migrations.Migration):
    dependencies = [("survey", "0016_subgroups")]

    operations = [migrations.RunPython(declare, migrations.RunPython.noop)]
