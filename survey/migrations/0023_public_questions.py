"""Let an owner keep the questions of an administration off the public page.

Nothing is public before the state allows it (accounts 0008).
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("survey", "0022_declines"), ("accounts", "0008_public_pages")]

    operations = [
        migrations.AddField(
            "Administration",
            "public_questions",
            models.BooleanField(default=True, db_default=True),
        ),
    ]
