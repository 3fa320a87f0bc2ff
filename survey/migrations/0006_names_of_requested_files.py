"""Call the field with a file's name as all requested files do; no column changes."""

from django.db import migrations, models

MODELS = ("cardset", "opencodefile")


class Migration(migrations.Migration):
    dependencies = [("survey", "0005_indexes_of_names")]

    operations = [
        *(
            migrations.AlterField(
                model,
                "file",
                models.CharField(max_length=100, blank=True, db_column="file"),
            )
            for model in MODELS
        ),
        *(migrations.RenameField(model, "file", "file_name") for model in MODELS),
    ]
