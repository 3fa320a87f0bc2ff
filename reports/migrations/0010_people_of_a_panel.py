from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("reports", "0009_awaiting_consent")]

    operations = [
        migrations.AddField(
            model_name="export",
            name="people",
            field=models.BigIntegerField(null=True),
        ),
    ]
