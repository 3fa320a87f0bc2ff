from django.db import migrations

# For whoever looks a person up in more than one school: the beginning of a
# name or an e-mail address. Three b-trees cost an import a few microseconds a
# row; trigrams, which would find the middle of a name too, cost a hundred.
# The whole ID is found by the unique constraint.
INDEXES = {
    "people_by_family_name": "(administration_id, upper(family_name) text_pattern_ops)",
    "people_by_given_name": "(administration_id, upper(given_name) text_pattern_ops)",
    "people_by_email": (
        "(administration_id, upper(email) text_pattern_ops) WHERE email <> ''"
    ),
}


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for name, of in INDEXES.items():
            schema_editor.execute(f"CREATE INDEX {name} ON survey_identity {of}")


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for name in INDEXES:
            schema_editor.execute(f"DROP INDEX {name}")


class Migration(migrations.Migration):
    """Without them, SQLite looks at everybody: it serves a single school."""

    dependencies = [("survey", "0014_card_sets")]

    operations = [migrations.RunPython(add, remove)]
