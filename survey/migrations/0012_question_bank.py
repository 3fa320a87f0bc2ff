"""Keep the questions that the state has approved, and which surveys use them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("survey", "0011_comments_on_drafts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BankQuestion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("code", models.CharField(max_length=64)),
                ("version", models.PositiveIntegerField()),
                ("content", models.JSONField()),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("retired_at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "retired_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="BankQuestionUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "question",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="uses",
                        to="survey.bankquestion",
                    ),
                ),
                (
                    "survey",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bank_uses",
                        to="survey.survey",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="bankquestion",
            constraint=models.UniqueConstraint(
                fields=("code", "version"),
                name="one_row_per_version_of_a_bank_question",
            ),
        ),
        migrations.AddConstraint(
            model_name="bankquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(("code__regex", "^[A-Za-z_][A-Za-z0-9_.-]*$")),
                name="code_of_a_bank_question_is_a_name",
            ),
        ),
        migrations.AddConstraint(
            model_name="bankquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(("version__gte", 1)),
                name="versions_of_bank_questions_count_from_1",
            ),
        ),
        migrations.AddConstraint(
            model_name="bankquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("retired_at", None), ("retired_by", None)),
                    ("retired_at__isnull", False),
                    _connector="OR",
                ),
                name="who_retired_a_bank_question_says_when",
            ),
        ),
        migrations.AddConstraint(
            model_name="bankquestionuse",
            constraint=models.UniqueConstraint(
                fields=("survey", "question"), name="a_survey_has_a_bank_question_once"
            ),
        ),
    ]
