from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0020_release_reason")]

    operations = [
        migrations.AddField(
            model_name="resultsrollup",
            name="undivided",
            field=models.JSONField(null=True),
        ),
    ]
