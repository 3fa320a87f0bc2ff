"""Store who was erased, who asked for it, and which IDs stay away; and files about one person."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [
        ("accounts", "0007_public_help"),
        ("survey", "0015_survey_day"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="respondent",
            name="erased_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name="Erasure",
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
                ("ordered_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("requested_on", models.DateField()),
                (
                    "requested_by",
                    models.CharField(
                        choices=[
                            ("parent", "A parent or guardian"),
                            ("person", "The person"),
                            ("school", "The school or district"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("request", "A request to delete the data"),
                            ("left", "The person has left the school"),
                            ("contract", "An agreement or contract has ended"),
                            ("mistake", "The data should not have been stored"),
                        ],
                        max_length=16,
                    ),
                ),
                ("people", models.PositiveIntegerField()),
                ("erased_at", models.DateTimeField(null=True)),
                ("completed_at", models.DateTimeField(null=True)),
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.district",
                    ),
                ),
            ],
            options={
                "ordering": ("-ordered_at", "-pk"),
            },
        ),
        migrations.CreateModel(
            name="ErasedRecord",
            fields=[
                (
                    "respondent",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="survey.respondent",
                    ),
                ),
                ("erased_at", models.DateTimeField(null=True)),
                ("rows", models.JSONField(default=dict)),
                (
                    "administration",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="survey.administration",
                    ),
                ),
                (
                    "erasure",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="records",
                        to="survey.erasure",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="ErasedId",
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
                    "role",
                    models.CharField(
                        choices=[
                            ("student", "Student"),
                            ("teacher", "Teacher"),
                            ("parent", "Parent"),
                        ],
                        max_length=16,
                    ),
                ),
                ("digest", models.BinaryField(max_length=32)),
                ("key_version", models.PositiveSmallIntegerField()),
                ("erased_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "district",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.district",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("district", "role", "digest"),
                        name="an_erased_id_is_remembered_once",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="erasure",
            index=models.Index(
                condition=models.Q(("completed_at", None)),
                fields=["ordered_at"],
                name="erasures_in_hand",
            ),
        ),
        migrations.AddConstraint(
            model_name="erasure",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("completed_at", None),
                    ("erased_at__isnull", False),
                    _connector="OR",
                ),
                name="files_are_deleted_after_the_rows",
            ),
        ),
        migrations.CreateModel(
            name="PersonFile",
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
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("made_at", models.DateTimeField(null=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                ("file_name", models.CharField(blank=True, max_length=100)),
                ("expires_at", models.DateTimeField(null=True)),
                ("size", models.BigIntegerField(null=True)),
                ("sha256", models.CharField(blank=True, max_length=64)),
                (
                    "requested_by",
                    models.CharField(
                        choices=[
                            ("parent", "A parent or guardian"),
                            ("person", "The person"),
                            ("school", "The school or district"),
                        ],
                        max_length=16,
                    ),
                ),
                ("requested_on", models.DateField()),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "job",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="survey.job",
                    ),
                ),
                (
                    "respondent",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="survey.respondent",
                    ),
                ),
            ],
            options={
                "ordering": ("-created_at", "-pk"),
                "indexes": [
                    models.Index(
                        condition=models.Q(("file_name", ""), _negated=True),
                        fields=["expires_at"],
                        name="person_files_with_a_file",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("file_name", ""),
                            models.Q(
                                ("expires_at__isnull", False),
                                ("made_at__isnull", False),
                                models.Q(("sha256", ""), _negated=True),
                                ("deleted_at", None),
                            ),
                            _connector="OR",
                        ),
                        name="a_persons_file_has_a_checksum_and_an_end",
                    )
                ],
            },
        ),
    ]
