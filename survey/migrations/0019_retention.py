"""Say how long data of a round are kept, who holds them, and what was destroyed."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

KINDS = [("identities", "Names and access codes"), ("answers", "Answers")]


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [
        ("accounts", "0009_retention_days"),
        ("survey", "0018_restore_points"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="administration",
            name="answers_destroyed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="administration",
            name="identities_destroyed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="administration",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("identities_destroyed_at", None),
                        ("identities_destroyed_at__gt", models.F("closes_at")),
                        _connector="OR",
                    ),
                    models.Q(
                        ("answers_destroyed_at", None),
                        ("answers_destroyed_at__gt", models.F("closes_at")),
                        _connector="OR",
                    ),
                ),
                name="what_was_destroyed_is_not_opened_again",
            ),
        ),
        migrations.CreateModel(
            name="Retention",
            fields=[
                (
                    "administration",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="retention",
                        serialize=False,
                        to="survey.administration",
                    ),
                ),
                ("identities_days", models.PositiveIntegerField(null=True)),
                ("answers_days", models.PositiveIntegerField(null=True)),
                ("identities_warned_at", models.DateTimeField(null=True)),
                ("answers_warned_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("identities_days", None),
                                ("identities_days__gte", 1),
                                _connector="OR",
                            ),
                            models.Q(
                                ("answers_days", None),
                                ("answers_days__gte", 1),
                                _connector="OR",
                            ),
                        ),
                        name="data_are_kept_for_a_day_at_least",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LegalHold",
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
                ("holder", models.CharField(max_length=200)),
                ("reason", models.CharField(max_length=500)),
                ("placed_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("lifted_at", models.DateTimeField(null=True)),
                ("lifted_reason", models.CharField(blank=True, max_length=500)),
                (
                    "administration",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="holds",
                        to="survey.administration",
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
                    "placed_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "lifted_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-placed_at", "-pk"),
                "indexes": [
                    models.Index(
                        condition=models.Q(("lifted_at", None)),
                        fields=["administration"],
                        name="holds_of_an_administration",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lifted_at", None), ("lifted_by", None)),
                            models.Q(
                                ("lifted_at__isnull", False),
                                ("lifted_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="a_lifted_hold_says_who_lifted_it",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Destruction",
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
                ("kind", models.CharField(choices=KINDS, max_length=16)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("counting", "being counted"),
                            ("counted", "counted"),
                            ("running", "being destroyed"),
                            ("done", "destroyed"),
                        ],
                        max_length=16,
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("ordered_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("destroyed_at", models.DateTimeField(null=True)),
                ("position", models.BigIntegerField(default=0)),
                ("tables", models.JSONField(default=dict)),
                ("digest_key", models.BinaryField(max_length=32, null=True)),
                ("files", models.PositiveIntegerField(default=0)),
                (
                    "administration",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="destructions",
                        to="survey.administration",
                    ),
                ),
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
                "ordering": ("-ordered_at", "-pk"),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ("running", "done"))),
                        fields=("administration", "kind"),
                        name="data_of_a_kind_are_destroyed_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("destroyed_at__isnull", False), ("state", "done")
                            ),
                            models.Q(
                                models.Q(("state", "done"), _negated=True),
                                ("destroyed_at", None),
                            ),
                            _connector="OR",
                        ),
                        name="destroyed_data_say_since_when",
                    ),
                ],
            },
        ),
    ]
