"""Settings of the state, districts and schools."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Coalesce


class Migration(migrations.Migration):
    dependencies = [("accounts", "0015_merges")]

    operations = [
        migrations.CreateModel(
            name="Logo",
            fields=[
                (
                    "name",
                    models.CharField(max_length=64, primary_key=True, serialize=False),
                ),
                ("content", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="PlaceSettings",
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
                ("name", models.CharField(blank=True, max_length=60)),
                ("contact_name", models.CharField(blank=True, max_length=100)),
                ("contact_phone", models.CharField(blank=True, max_length=40)),
                ("contact_email", models.EmailField(blank=True, max_length=254)),
                (
                    "student_percent",
                    models.PositiveSmallIntegerField(blank=True, null=True),
                ),
                (
                    "teacher_percent",
                    models.PositiveSmallIntegerField(blank=True, null=True),
                ),
                (
                    "parent_percent",
                    models.PositiveSmallIntegerField(blank=True, null=True),
                ),
                (
                    "district",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="settings",
                        to="accounts.district",
                    ),
                ),
                (
                    "school",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="settings",
                        to="accounts.school",
                    ),
                ),
                (
                    "logo",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.logo",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "place settings",
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(district=None) | Q(school=None),
                        name="settings_belong_to_one_place",
                    ),
                    models.UniqueConstraint(
                        Coalesce("district", 0),
                        Coalesce("school", 0),
                        name="one_row_of_settings_per_place",
                    ),
                    models.CheckConstraint(
                        condition=(
                            Q(student_percent=None) | Q(student_percent__range=(1, 100))
                        )
                        & (
                            Q(teacher_percent=None) | Q(teacher_percent__range=(1, 100))
                        )
                        & (Q(parent_percent=None) | Q(parent_percent__range=(1, 100))),
                        name="a_threshold_is_1_to_100_percent",
                    ),
                ],
            },
        ),
    ]
