"""Join the certificate of a destroyed round with the record of its destruction."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("survey", "0023_public_questions")]

    operations = [
        migrations.AddField(
            model_name="destructioncertificate",
            name="destruction",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="certificate",
                to="survey.destruction",
            ),
        ),
    ]
