from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0018_score_format")]

    operations = [
        migrations.AddField(
            model_name="resultsrollup",
            name=name,
            field=models.CharField(
                blank=True, db_default="", default="", max_length=length
            ),
        )
        for name, length in (("survey_digest", 64), ("software", 100))
    ]
