from django.db import migrations, models

COLUMNS = (
    ("contact_name", models.CharField, 100),
    ("contact_phone", models.CharField, 40),
    ("contact_email", models.EmailField, 254),
)


class Migration(migrations.Migration):
    """Add public contacts to the school directory."""

    dependencies = [("accounts", "0011_find_schools")]

    operations = [
        migrations.SeparateDatabaseAndState(
            # On SQLite, Django would copy the table and lose its triggers.
            [
                migrations.RunSQL(
                    f"ALTER TABLE accounts_schoollisting ADD COLUMN {name}"
                    f" varchar({length}) NOT NULL DEFAULT ''",
                    f"ALTER TABLE accounts_schoollisting DROP COLUMN {name}",
                )
                for name, _, length in COLUMNS
            ],
            [
                migrations.AddField(
                    "schoollisting",
                    name,
                    kind(blank=True, db_default="", default="", max_length=length),
                )
                for name, kind, length in COLUMNS
            ],
        )
    ]
