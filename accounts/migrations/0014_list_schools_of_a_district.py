from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0013_find_words_sooner")]

    operations = [
        migrations.AddIndex(
            "schoollisting",
            models.Index(fields=["district", "search"], name="schools_of_a_district"),
        )
    ]
