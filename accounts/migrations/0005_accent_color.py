"""Let the state and districts choose a color for the pages of respondents.

The database has the default, too: code of the release before writes rows without it.
"""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_queued_email")]

    operations = [
        migrations.AddField(
            "PlaceSettings",
            "accent",
            models.CharField(max_length=7, blank=True, default="", db_default=""),
        ),
        migrations.AddConstraint(
            "PlaceSettings",
            models.CheckConstraint(
                condition=Q(accent="") | Q(accent__regex="^#[0-9a-f]{6}$"),
                name="an_accent_color_is_hexadecimal",
            ),
        ),
    ]
