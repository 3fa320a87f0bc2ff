from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("reports", "0005_export_codebook_table")]

    operations = [
        migrations.AddField(
            model_name="schoolrate",
            name="opted_out",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
