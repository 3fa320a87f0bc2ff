"""Add the language that a user chose for the console."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0017_closed_places")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="language",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=10
            ),
        ),
    ]
