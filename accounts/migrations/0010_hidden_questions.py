"""Let districts keep the questions of their survey rounds off public pages.

A column of its own: the release before reads `public_questions` of any place as the
state's. The database has the default for settings that it adds.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("accounts", "0009_retention_days")]

    operations = [
        migrations.AddField(
            "PlaceSettings",
            "hides_questions",
            models.BooleanField(default=False, db_default=False),
        ),
        migrations.AddConstraint(
            "PlaceSettings",
            models.CheckConstraint(
                condition=models.Q(hides_questions=False)
                | models.Q(district__isnull=False),
                name="only_districts_hide_their_questions",
            ),
        ),
    ]
