"""For the audit page's filters, with millions of entries."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_logging_in")]

    operations = [
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["by", "-at"], name="audit_by_a_person"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["action", "-at"], name="audit_of_an_action"),
        ),
    ]
