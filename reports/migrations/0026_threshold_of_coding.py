"""Freeze the threshold of coding with the results.

Releases of before get the default: it shows less of them than they have shown.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0025_roster_groups")]

    operations = [
        migrations.AddField(
            model_name="resultsrollup",
            name="coding_threshold",
            field=models.PositiveSmallIntegerField(default=5, db_default=5),
        ),
    ]
