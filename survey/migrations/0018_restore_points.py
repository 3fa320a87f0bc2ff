"""Name restore points of a cluster among the backups; no table changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("survey", "0017_erase_answers")]

    operations = [
        migrations.AlterField(
            model_name="backuprun",
            name="kind",
            field=models.CharField(
                choices=[
                    ("backup", "Backup"),
                    ("drill", "restore drill"),
                    ("point", "restore point"),
                ],
                max_length=6,
            ),
        ),
    ]
