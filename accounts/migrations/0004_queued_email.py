"""Call e-mails of the outbox what they are; the database says when they are due.

The table keeps its name, by which workers of the release before send from it.
"""

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_directory_of_schools")]

    operations = [
        migrations.AlterModelTable("Letter", "accounts_letter"),
        migrations.RenameModel("Letter", "QueuedEmail"),
        migrations.RenameIndex(
            "QueuedEmail", new_name="queued_emails_due", old_name="letters_due"
        ),
        migrations.AlterField(
            "QueuedEmail", "due_at", models.DateTimeField(db_default=Now())
        ),
    ]
