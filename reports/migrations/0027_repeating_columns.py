from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0026_threshold_of_coding")]

    operations = [
        migrations.AddField(
            model_name="resultsrollup",
            name="repeating",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="resultsrollup",
            name="minimum_group",
            field=models.PositiveSmallIntegerField(null=True),
        ),
    ]
