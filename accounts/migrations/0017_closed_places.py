from django.db import migrations, models


class Migration(migrations.Migration):
    """Let districts and schools be closed."""

    dependencies = [("accounts", "0016_place_settings")]

    operations = [
        migrations.AddField(
            model_name="district",
            name="closed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="school",
            name="closed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.SeparateDatabaseAndState(
            # On SQLite, Django would copy the table and lose its triggers.
            [
                migrations.RunSQL(
                    "ALTER TABLE accounts_schoollisting ADD COLUMN closed bool NOT NULL"
                    " DEFAULT false",
                    "ALTER TABLE accounts_schoollisting DROP COLUMN closed",
                )
            ],
            [
                migrations.AddField(
                    model_name="schoollisting",
                    name="closed",
                    field=models.BooleanField(
                        db_default=False, default=False, editable=False
                    ),
                )
            ],
        ),
    ]
