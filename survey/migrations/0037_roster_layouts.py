import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0014_list_schools_of_a_district"),
        ("survey", "0036_empty_starts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="rosterupload",
            name="layout",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="rosterupload",
            name="samples",
            field=models.JSONField(null=True),
        ),
        migrations.AlterField(
            model_name="rosterupload",
            name="complete_for",
            field=models.CharField(
                choices=[
                    ("schools", "Every school in it"),
                    ("districts", "Every district in it"),
                    ("state", "The whole state"),
                    ("changes", "Nobody: the file only adds and changes people"),
                ],
                default="changes",
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="rosterupload",
            name="state",
            field=models.CharField(
                choices=[
                    ("checking", "being checked"),
                    ("mapping", "columns to be chosen"),
                    ("checked", "ready to apply"),
                    ("refused", "cannot be read"),
                    ("applying", "being applied"),
                    ("applied", "applied"),
                    ("cancelled", "cancelled"),
                    ("failed", "not fully applied"),
                ],
                default="checking",
                max_length=16,
            ),
        ),
        migrations.CreateModel(
            name="RosterLayoutChoice",
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
                ("header_key", models.CharField(max_length=64)),
                ("layout", models.JSONField()),
                ("chosen_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "district",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.district",
                    ),
                ),
                (
                    "school",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.school",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="rosterupload",
            name="layout_choice",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="survey.rosterlayoutchoice",
            ),
        ),
        migrations.AddConstraint(
            model_name="rosterupload",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("samples__isnull", True),
                    models.Q(("file", ""), _negated=True),
                    _connector="OR",
                ),
                name="samples_are_deleted_with_the_file",
            ),
        ),
        migrations.AddIndex(
            model_name="rosterlayoutchoice",
            index=models.Index(fields=["header_key", "-id"], name="layouts_by_header"),
        ),
        migrations.AddConstraint(
            model_name="rosterlayoutchoice",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("school", None), ("district__isnull", False), _connector="OR"
                ),
                name="a_layout_for_a_school_names_its_district",
            ),
        ),
    ]
