"""Let people with an access code say that they do not want to take part.

The database has the defaults, too: code of the release before adds rows without them.
Rows of before are checked by 0025, without a lock that holds up saves.
"""

from django.db import migrations, models

from accounts.migration_operations import AddUnvalidatedConstraint


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("survey", "0021_certificates")]

    operations = [
        migrations.AddField(
            "Administration",
            "allows_declining",
            models.BooleanField(default=False, db_default=False),
        ),
        migrations.AddField(
            "Respondent",
            "declined_at",
            models.DateTimeField(null=True, blank=True),
        ),
        AddUnvalidatedConstraint(
            "Respondent",
            models.CheckConstraint(
                condition=models.Q(declined_at__isnull=True)
                | models.Q(completed_at__isnull=False),
                name="people_who_declined_can_save_nothing_more",
            ),
        ),
    ]
