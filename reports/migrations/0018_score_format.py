from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0017_essential_errors")]

    operations = [
        migrations.AddField(
            model_name="scoring",
            name="format",
            field=models.PositiveSmallIntegerField(db_default=1, default=2),
        ),
    ]
