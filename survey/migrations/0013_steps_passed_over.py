"""Keep which steps of a draft an undo has passed over."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0012_question_bank")]

    operations = [
        migrations.AddField(
            "draftchange",
            "is_passed_over",
            models.BooleanField(db_default=False, default=False),
        ),
    ]
