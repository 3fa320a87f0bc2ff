from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0016_report_archives")]

    operations = [
        migrations.AddField(
            model_name="scorerow",
            name="essential_errors",
            field=models.JSONField(null=True),
        ),
    ]
