"""Keep what became of each part of a converted questionnaire."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0009_drafts_as_rows")]

    operations = [
        migrations.AddField(
            "surveyupload", "report", models.JSONField(db_default=[], default=list)
        ),
    ]
