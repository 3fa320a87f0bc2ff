import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0014_list_schools_of_a_district"),
        ("survey", "0037_roster_layouts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="FeedScan",
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
                    "reason",
                    models.CharField(
                        choices=[
                            ("night", "Schedule"),
                            ("now", "Started by hand"),
                            ("try", "Trial"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("held", "held until confirmed"),
                            ("applied", "applied"),
                            ("unchanged", "nothing new"),
                            ("tried", "tried, nothing applied"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default="waiting",
                        max_length=16,
                    ),
                ),
                ("message", models.CharField(blank=True, max_length=500)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("night", models.DateField(null=True)),
                ("begins_before", models.DateTimeField(null=True)),
                ("retry_at", models.DateTimeField(null=True)),
                ("confirmed_at", models.DateTimeField(null=True)),
                ("typed", models.CharField(blank=True, max_length=200)),
                ("folder", models.CharField(blank=True, max_length=200)),
                ("download", models.JSONField(default=dict)),
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
                    "confirmed_by",
                    models.ForeignKey(
                        null=True,
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
                "ordering": ("-created_at", "-pk"),
            },
        ),
        migrations.AddField(
            model_name="rosterupload",
            name="scan",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="uploads",
                to="survey.feedscan",
            ),
        ),
        migrations.CreateModel(
            name="RosterFeed",
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
                ("name", models.CharField(max_length=100)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("zip", "ZIP file at an address"),
                            ("sftp", "Folder of an SFTP server"),
                            ("rest", "OneRoster API"),
                        ],
                        max_length=8,
                    ),
                ),
                ("address", models.CharField(max_length=1000)),
                ("credentials", models.BinaryField(blank=True, default=bytes)),
                ("options", models.JSONField(blank=True, default=dict)),
                ("identity", models.CharField(default="sourcedId", max_length=100)),
                ("window_begins", models.TimeField(blank=True, null=True)),
                ("window_ends", models.TimeField(blank=True, null=True)),
                ("is_paused", models.BooleanField(default=False)),
                ("etag", models.CharField(blank=True, max_length=500)),
                ("digest", models.CharField(blank=True, max_length=128)),
                ("store", models.CharField(blank=True, max_length=200)),
                ("is_store_applied", models.BooleanField(default=False)),
                ("loaded_at", models.DateTimeField(blank=True, null=True)),
                ("last_full_at", models.DateTimeField(blank=True, null=True)),
                ("host_key", models.CharField(blank=True, max_length=1000)),
                ("failures_in_a_row", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "administrations",
                    models.ManyToManyField(
                        related_name="feeds", to="survey.administration"
                    ),
                ),
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
                        related_name="feeds",
                        to="accounts.district",
                    ),
                ),
            ],
            options={
                "ordering": ("district", "name", "pk"),
            },
        ),
        migrations.AddField(
            model_name="feedscan",
            name="feed",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="scans",
                to="survey.rosterfeed",
            ),
        ),
        migrations.CreateModel(
            name="FeedStage",
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
                    "stage",
                    models.CharField(
                        choices=[
                            ("download", "Download"),
                            ("parse", "Parse"),
                            ("compare", "Compare"),
                            ("apply", "Apply"),
                        ],
                        max_length=8,
                    ),
                ),
                ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("ended_at", models.DateTimeField(null=True)),
                ("bytes", models.BigIntegerField(default=0)),
                ("rows", models.BigIntegerField(default=0)),
                ("attempts", models.PositiveSmallIntegerField(default=1)),
                ("message", models.CharField(blank=True, max_length=500)),
                (
                    "scan",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="stages",
                        to="survey.feedscan",
                    ),
                ),
            ],
            options={
                "ordering": ("scan", "started_at", "pk"),
                "indexes": [
                    models.Index(fields=["started_at"], name="stages_by_start")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("scan", "stage"), name="a_scan_has_each_stage_once"
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="rosterfeed",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("window_begins", None), ("window_ends", None)),
                    models.Q(
                        ("window_begins__isnull", False), ("window_ends__isnull", False)
                    ),
                    _connector="OR",
                ),
                name="a_scan_window_begins_and_ends",
            ),
        ),
        migrations.AddConstraint(
            model_name="rosterfeed",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("window_begins", None),
                    models.Q(("window_begins", models.F("window_ends")), _negated=True),
                    _connector="OR",
                ),
                name="a_scan_window_has_a_length",
            ),
        ),
        migrations.AddConstraint(
            model_name="rosterfeed",
            constraint=models.UniqueConstraint(
                condition=models.Q(("removed_at", None)),
                fields=("district", "name"),
                name="feeds_of_a_district_have_different_names",
            ),
        ),
        migrations.AddIndex(
            model_name="feedscan",
            index=models.Index(fields=["feed", "-created_at"], name="scans_of_a_feed"),
        ),
        migrations.AddIndex(
            model_name="feedscan",
            index=models.Index(fields=["-created_at"], name="scans_newest"),
        ),
        migrations.AddConstraint(
            model_name="feedscan",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ("waiting", "running"))),
                fields=("district",),
                name="scans_of_a_district_do_not_overlap",
            ),
        ),
        migrations.AddConstraint(
            model_name="feedscan",
            constraint=models.UniqueConstraint(
                condition=models.Q(("night__isnull", False)),
                fields=("feed", "night"),
                name="a_feed_is_scanned_once_a_night",
            ),
        ),
        migrations.AddConstraint(
            model_name="feedscan",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("night__isnull", False), ("reason", "night")),
                    models.Q(
                        models.Q(("reason", "night"), _negated=True), ("night", None)
                    ),
                    _connector="OR",
                ),
                name="a_scheduled_scan_has_a_night",
            ),
        ),
        migrations.AddConstraint(
            model_name="feedscan",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("reason", "try"), _negated=True),
                    models.Q(("state__in", ("applied", "held")), _negated=True),
                    _connector="OR",
                ),
                name="a_trial_is_never_applied",
            ),
        ),
    ]
