from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0021_undivided_results")]

    operations = [
        migrations.AddField(
            model_name="resultsrollup",
            name="summed",
            field=models.JSONField(null=True),
        ),
    ]
