"""Store survey days, during which work that can wait leaves the servers to others."""

import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.lookups
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [
        ("survey", "0014_district_modules"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SurveyDay",
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
                    "began_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now()
                    ),
                ),
                ("ends_at", models.DateTimeField()),
                ("reason", models.CharField(max_length=200)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-began_at", "-pk"),
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.lookups.IsNull(models.F("ended_at"), True),
                        condition=models.Q(("ended_at", None)),
                        name="one_survey_day_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("ends_at__gt", models.F("began_at"))),
                        name="a_survey_day_ends_after_it_begins",
                    ),
                ],
            },
        ),
    ]
