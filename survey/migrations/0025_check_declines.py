"""Check the rows of before 0022, while people go on saving."""

from django.db import migrations

from accounts.migration_operations import RunStatements

VALIDATE = (
    "ALTER TABLE survey_respondent"
    " VALIDATE CONSTRAINT people_who_declined_can_save_nothing_more"
)


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("survey", "0024_certificates_of_rounds")]

    operations = [RunStatements(postgresql=[VALIDATE])]
