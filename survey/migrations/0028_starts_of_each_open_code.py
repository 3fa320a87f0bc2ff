"""Count the starts of an open code without reading all respondents."""

from django.db import migrations, models

NAME = "starts_of_each_open_code"
TABLE = "survey_respondent (open_code_id) WHERE open_code_id IS NOT NULL"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        # Starts and saves go on meanwhile. If it was interrupted, it left an
        # index that is never used.
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}")
        schema_editor.execute(f"CREATE INDEX CONCURRENTLY {NAME} ON {TABLE}")
    else:
        schema_editor.execute(f"CREATE INDEX {NAME} ON {TABLE}")


def remove(apps, schema_editor):
    concurrently = (
        "CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""
    )
    schema_editor.execute(f"DROP INDEX {concurrently} {NAME}")


class Migration(migrations.Migration):
    # PostgreSQL builds no index concurrently within a transaction.
    atomic = False

    dependencies = [("survey", "0027_publish_open_codes")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(add, remove)],
            state_operations=[
                migrations.AddIndex(
                    model_name="respondent",
                    index=models.Index(
                        condition=models.Q(("open_code__isnull", False)),
                        fields=["open_code"],
                        name=NAME,
                    ),
                )
            ],
        )
    ]
