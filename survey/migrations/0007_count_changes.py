from django.db import migrations, models


class Migration(migrations.Migration):
    """Two who change an administration at once are told of each other."""

    dependencies = [("survey", "0006_owned_waves")]

    operations = [
        migrations.AddField(
            model_name="administration",
            name="changes",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
