from django.db import migrations

from accounts.folded_text import postgresql_fold

# Replaced by indexes on names without accents, apostrophes and hyphens.
NAMES = {"people_by_family_name": "family_name", "people_by_given_name": "given_name"}


def replace(expression):
    def run(apps, schema_editor):
        if schema_editor.connection.vendor != "postgresql":
            return
        for index, column in NAMES.items():
            schema_editor.execute(f"DROP INDEX {index}")
            schema_editor.execute(
                f"CREATE INDEX {index} ON survey_identity"
                f" (administration_id, ({expression(column)}) text_pattern_ops)"
            )

    return run


class Migration(migrations.Migration):
    dependencies = [("survey", "0057_people_await_consent")]

    operations = [
        migrations.RunPython(
            replace(postgresql_fold), replace("upper({})".format)
        ),
    ]
