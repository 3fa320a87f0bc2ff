"""Check that people who await consent are kept out, and count them by an index."""

from importlib import import_module

from django.db import migrations, models

AddConstraintWithoutLock = import_module(
    "survey.migrations.0051_opted_out_people_are_withdrawn"
).AddConstraintWithoutLock

NAME = "people_who_await_consent"
TABLE = "survey_respondent (administration_id, school_id) WHERE awaits_consent"


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

    dependencies = [("survey", "0056_consents")]

    operations = [
        AddConstraintWithoutLock(
            model_name="respondent",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("awaits_consent", False),
                    ("opted_out_at__isnull", False),
                    _connector="OR",
                ),
                name="no_roster_lets_people_start_without_consent",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(add, remove)],
            state_operations=[
                migrations.AddIndex(
                    model_name="respondent",
                    index=models.Index(
                        condition=models.Q(("awaits_consent", True)),
                        fields=["administration", "school"],
                        name=NAME,
                    ),
                )
            ],
        ),
    ]
