"""Keep what became of each part of a converted questionnaire."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0008_cards_of_many_schools")]

    operations = [
        migrations.AddField(
            "surveyupload", "report", models.JSONField(db_default=[], default=list)
        ),
    ]
