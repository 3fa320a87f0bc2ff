"""Let districts have another time zone than the state.

The database has the default, too: code of the release before adds districts
without it.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_accent_color")]

    operations = [
        migrations.AddField(
            "District",
            "time_zone",
            models.CharField(max_length=64, blank=True, default="", db_default=""),
        ),
    ]
