from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("reports", "0008_threshold_percent")]

    operations = [
        migrations.AddField(
            model_name="schoolrate",
            name="awaiting_consent",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
