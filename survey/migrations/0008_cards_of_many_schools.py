"""Allow login cards of many schools in one file."""

from django.db import migrations, models
from django.db.models import Q

NAME = "cards_and_new_codes_are_of_one_school"


class Migration(migrations.Migration):
    dependencies = [("survey", "0007_denominator_words")]

    operations = [
        migrations.AlterField(
            "cardset",
            "format",
            models.CharField(
                choices=[
                    ("pdf", "Login cards to print (PDF)"),
                    ("zip", "Login cards of many schools (ZIP)"),
                    ("csv", "A list for mail merge (CSV)"),
                    ("email", "E-mails with access codes"),
                ],
                default="pdf",
                max_length=8,
            ),
        ),
        migrations.RemoveConstraint("cardset", NAME),
        migrations.AddConstraint(
            "cardset",
            models.CheckConstraint(
                condition=Q(school__isnull=False)
                | Q(
                    format__in=("csv", "email", "zip"),
                    grade="",
                    classroom="",
                    respondent=None,
                    reissue=False,
                ),
                name=NAME,
            ),
        ),
    ]
