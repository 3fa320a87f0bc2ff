from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("survey", "0052_days_off")]

    operations = [
        migrations.AddField(
            model_name="cardset",
            name="unfinished",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
