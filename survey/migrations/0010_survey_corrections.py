"""A version that mends the texts of another says which."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0009_survey_owners")]

    operations = [
        migrations.AddField(
            model_name="survey",
            name="corrects",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="corrections",
                to="survey.publishedsurvey",
            ),
        ),
    ]
