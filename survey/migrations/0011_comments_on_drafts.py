"""Keep what colleagues say about the questions of a draft."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("survey", "0010_reports_of_conversions"),
    ]

    operations = [
        migrations.CreateModel(
            name="DraftComment",
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
                ("key", models.CharField(blank=True, max_length=16)),
                ("text", models.CharField(max_length=2_000)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("resolved_at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "replies_to",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="replies",
                        to="survey.draftcomment",
                    ),
                ),
                (
                    "resolved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "survey",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="comments",
                        to="survey.survey",
                    ),
                ),
            ],
            options={"ordering": ("at", "pk")},
        ),
        migrations.AddConstraint(
            model_name="draftcomment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("replies_to", None), ("resolved_at", None), _connector="OR"
                ),
                name="only_a_first_comment_is_resolved",
            ),
        ),
    ]
