"""Let the state open the help site to everyone.

The database has the default, too: code of the release before adds settings without
it.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("accounts", "0006_time_zones_of_districts")]

    operations = [
        migrations.AddField(
            "PlaceSettings",
            "public_help",
            models.BooleanField(default=False, db_default=False),
        ),
        migrations.AddConstraint(
            "PlaceSettings",
            models.CheckConstraint(
                condition=models.Q(public_help=False)
                | models.Q(district=None, school=None),
                name="only_the_state_opens_the_help",
            ),
        ),
    ]
