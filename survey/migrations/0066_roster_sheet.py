"""A roster says which sheet of its workbook is read, where several have people."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("survey", "0065_open_code_starts_per_hour"),
    ]

    operations = [
        migrations.AddField(
            model_name="rosterupload",
            name="sheet",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=100
            ),
        ),
    ]
