"""The language in which each person finished."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0053_cards_of_unfinished_people")]

    operations = [
        migrations.AddField(
            model_name="respondent",
            name="response_language",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=35
            ),
        )
    ]
