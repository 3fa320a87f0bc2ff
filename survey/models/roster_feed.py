"""Feeds: sources of a district's rosters, and their scans."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.permissions import Capability, Permissions
from accounts.tables import Reference, Table


class RosterFeedQuerySet(models.QuerySet["RosterFeed"]):
    def visible_to(self, permissions: Permissions) -> RosterFeedQuerySet:
        """Return the feeds of whole districts where the user manages rosters."""
        places = permissions.places(Capability.MANAGE_ROSTERS)
        if places.state:
            return self
        return self.filter(district__in=places.districts)

    def current(self) -> RosterFeedQuerySet:
        return self.filter(removed_at=None)


class RosterFeed(Table, district=Reference.ADAPTED):
    """A source of a district's rosters that is scanned every night.

    Only the functions of `survey.people.rosters.feeds` change it.
    """

    class Kind(models.TextChoices):
        ZIP = "zip", _("ZIP file at an address")
        SFTP = "sftp", _("Folder of an SFTP server")
        REST = "rest", "OneRoster API"

    name = models.CharField(max_length=100)
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, related_name="feeds"
    )
    # The owner: scans change what this user may change at that moment.
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    kind = models.CharField(max_length=8, choices=Kind)
    address = models.CharField(max_length=1000)
    # Sealed by `feeds.credentials`; never shown again.
    credentials = models.BinaryField(default=bytes, blank=True)
    # When the credentials were entered, which is all that pages show of them.
    credentials_set_at = models.DateTimeField(null=True, blank=True)
    # Such as the folder and file pattern, the OneRoster version, the token's address.
    options = models.JSONField(default=dict, blank=True)
    # Which column identifies a person: "sourcedId", "identifier" or "userIds:TYPE".
    identity = models.CharField(max_length=100, default="sourcedId")
    # The one before, until a scan has told both IDs of everybody.
    previous_identity = models.CharField(max_length=100, blank=True)
    administrations = models.ManyToManyField(
        "survey.Administration", related_name="feeds"
    )
    # By the clocks of the district; both null: scanned only by hand.
    window_begins = models.TimeField(null=True, blank=True)
    window_ends = models.TimeField(null=True, blank=True)
    is_paused = models.BooleanField(default=False)

    # The content that `store` holds.
    etag = models.CharField(max_length=500, blank=True)
    digest = models.CharField(max_length=128, blank=True)
    # The private file of the `OneRosterStore`.
    store = models.CharField(max_length=200, blank=True)
    # Whether everything in the store was applied. False after a held or tried scan,
    # so that unchanged content is compared again.
    is_store_applied = models.BooleanField(default=False)
    # When the newest download in the store began; deltas begin there.
    loaded_at = models.DateTimeField(null=True, blank=True)
    last_full_at = models.DateTimeField(null=True, blank=True)
    # Of the SFTP server, as first seen.
    host_key = models.CharField(max_length=1000, blank=True)
    failures_in_a_row = models.PositiveIntegerField(default=0)

    created_at = models.DateTimeField(default=timezone.now)
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = RosterFeedQuerySet.as_manager()

    class Meta:
        ordering = ("district", "name", "pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(window_begins=None, window_ends=None)
                | Q(window_begins__isnull=False, window_ends__isnull=False),
                name="a_scan_window_begins_and_ends",
            ),
            models.CheckConstraint(
                condition=Q(window_begins=None)
                | ~Q(window_begins=models.F("window_ends")),
                name="a_scan_window_has_a_length",
            ),
            models.UniqueConstraint(
                fields=("district", "name"),
                condition=Q(removed_at=None),
                name="feeds_of_a_district_have_different_names",
            ),
        )

    def __str__(self) -> str:
        return self.name


class FeedScan(Table, district=Reference.MOVED):
    """One look at a feed: download, parse, compare and apply."""

    class Reason(models.TextChoices):
        NIGHT = "night", pgettext_lazy("feed", "Schedule")
        NOW = "now", _("Started by hand")
        # Shows what a scan would change, and never applies it.
        TRY = "try", _("Trial")

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        # Nothing was applied: a person has to confirm it.
        HELD = "held", _("held until confirmed")
        APPLIED = "applied", _("applied")
        UNCHANGED = "unchanged", _("nothing new")
        TRIED = "tried", _("tried, nothing applied")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    UNFINISHED = (State.WAITING, State.RUNNING)

    feed = models.ForeignKey(RosterFeed, on_delete=models.CASCADE, related_name="scans")
    # The feed's, for the constraint.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, related_name="+"
    )
    reason = models.CharField(max_length=8, choices=Reason)
    # Null for those of the schedule.
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    # Why it failed, is held or waits: a sentence for the owner.
    message = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # Of a scheduled scan: the date on which its window began, and the window's end.
    night = models.DateField(null=True)
    begins_before = models.DateTimeField(null=True)
    was_held = models.BooleanField(default=False)
    # When a download that failed is tried again.
    retry_at = models.DateTimeField(null=True)
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    confirmed_at = models.DateTimeField(null=True)
    typed = models.CharField(max_length=200, blank=True)
    # The folder of downloaded files, empty once deleted; what the download returned.
    folder = models.CharField(max_length=200, blank=True)
    download = models.JSONField(default=dict)
    # That an SFTP server showed in place of the known one, which failed the scan.
    host_key = models.CharField(max_length=1000, blank=True, default="", db_default="")

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=("district",),
                condition=Q(state__in=("waiting", "running")),
                name="scans_of_a_district_do_not_overlap",
            ),
            models.UniqueConstraint(
                fields=("feed", "night"),
                condition=Q(night__isnull=False),
                name="a_feed_is_scanned_once_a_night",
            ),
            models.CheckConstraint(
                condition=Q(reason="night", night__isnull=False)
                | ~Q(reason="night") & Q(night=None),
                name="a_scheduled_scan_has_a_night",
            ),
            models.CheckConstraint(
                condition=~Q(reason="try") | ~Q(state__in=("applied", "held")),
                name="a_trial_is_never_applied",
            ),
        )
        indexes = (
            # The history of a feed, the newest scan first.
            models.Index(fields=("feed", "-created_at"), name="scans_of_a_feed"),
            # The last window of all feeds.
            models.Index(fields=("-created_at",), name="scans_newest"),
        )

    def __str__(self) -> str:
        return f"{self.feed}: {self.get_state_display()}"

    @property
    def is_over(self) -> bool:
        return self.state not in self.UNFINISHED


class FeedStage(Table):
    """One stage of a scan: how long it took and how much it handled."""

    class Stage(models.TextChoices):
        DOWNLOAD = "download", pgettext_lazy("stage", "Download")
        PARSE = "parse", _("Parse")
        COMPARE = "compare", _("Compare")
        APPLY = "apply", _("Apply")

    scan = models.ForeignKey(FeedScan, on_delete=models.CASCADE, related_name="stages")
    stage = models.CharField(max_length=8, choices=Stage)
    # Of the last attempt.
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)
    bytes = models.BigIntegerField(default=0)
    rows = models.BigIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=1)
    # Why it failed.
    message = models.CharField(max_length=500, blank=True)
    # Which files and columns were ignored or read differently, one a line.
    notes = models.TextField(blank=True, default="", db_default="")

    class Meta:
        ordering = ("scan", "started_at", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("scan", "stage"), name="a_scan_has_each_stage_once"
            ),
        )
        indexes = (
            # Which stages ran in the last window.
            models.Index(fields=("started_at",), name="stages_by_start"),
        )

    def __str__(self) -> str:
        return f"{self.stage} of {self.scan_id}"

    @property
    def is_done(self) -> bool:
        return self.ended_at is not None and not self.message
