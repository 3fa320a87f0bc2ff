"""The threshold of each school, which places can set."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reports", "0007_panels")]

    operations = [
        migrations.AddField(
            model_name="schoolrate",
            name="percent",
            field=models.PositiveSmallIntegerField(null=True),
        )
    ]
