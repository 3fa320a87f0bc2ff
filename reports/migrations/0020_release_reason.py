from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0019_provenance_of_results")]

    operations = [
        migrations.AddField(
            model_name="releaseditem",
            name="because",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=500
            ),
        ),
    ]
