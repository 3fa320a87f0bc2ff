"""Uploaded rosters: the file, the changes it would make, the confirmation."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.permissions import Capability, Permissions
from accounts.tables import Erasing, Reference, Table


class RosterUploadQuerySet(models.QuerySet["RosterUpload"]):
    def visible_to(self, permissions: Permissions) -> RosterUploadQuerySet:
        """Return the uploads for places where the user manages rosters.

        The place of the upload counts, not the uploader: people who change
        schools lose access to the rosters of the old one.
        """
        places = permissions.places(Capability.MANAGE_ROSTERS)
        if places.state:
            return self
        return self.filter(
            Q(district__in=places.districts)
            | Q(school__district__in=places.districts)
            | Q(school__in=places.schools)
        )

    def listed(self) -> RosterUploadQuerySet:
        """Return all but those that nobody has confirmed in time."""
        return self.exclude(
            uploaded_at__lt=timezone.now() - RosterUpload.CONFIRMED_WITHIN,
            confirmed_at=None,
            scan=None,
        )


class RosterUpload(
    Table,
    # First values of columns.
    erasing=Erasing.WITH_FILES,
    district=Reference.MOVED,
    school=Reference.MOVED,
):
    """One roster file for one place; see `survey.people.rosters.uploads`."""

    class State(models.TextChoices):
        CHECKING = "checking", gettext_lazy("being checked")
        # Somebody has to say which column holds what.
        MAPPING = "mapping", gettext_lazy("columns to be chosen")
        # Nothing has changed yet: the upload has to be confirmed.
        CHECKED = "checked", gettext_lazy("ready to apply")
        REFUSED = "refused", gettext_lazy("cannot be read")
        APPLYING = "applying", gettext_lazy("being applied")
        APPLIED = "applied", gettext_lazy("applied")
        CANCELLED = "cancelled", gettext_lazy("cancelled")
        # An error of the system; it can be started again.
        FAILED = "failed", gettext_lazy("not fully applied")
        UNDOING = "undoing", gettext_lazy("being undone")
        UNDONE = "undone", gettext_lazy("undone")

    class CompleteFor(models.TextChoices):
        """Places in which people missing from the file are withdrawn."""

        SCHOOLS = "schools", gettext_lazy("Every school in it")
        DISTRICTS = "districts", gettext_lazy("Every district in it")
        STATE = "state", gettext_lazy("The whole state")
        CHANGES = (
            "changes",
            gettext_lazy("Nobody: the file only adds and changes people"),
        )

    # Later it is cancelled, and leaves the lists.
    CONFIRMED_WITHIN = timedelta(days=14)

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.PROTECT, related_name="rosters"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    # The place whose people it may change; both null: the whole state.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, null=True, related_name="+"
    )
    school = models.ForeignKey(
        "accounts.School", on_delete=models.PROTECT, null=True, related_name="+"
    )
    uploaded_at = models.DateTimeField(default=timezone.now)
    # In `survey.work.files`; empty once deleted. Name and size as sent by the browser.
    file = models.CharField(max_length=200, blank=True)
    name = models.CharField(max_length=200)
    size = models.BigIntegerField()
    complete_for = models.CharField(
        max_length=16, choices=CompleteFor, default=CompleteFor.CHANGES
    )
    # The sheet of a workbook that is read, * for all of them; empty for the only one.
    sheet = models.CharField(max_length=100, blank=True, default="", db_default="")
    state = models.CharField(max_length=16, choices=State, default=State.CHECKING)
    # `RosterLayout.as_dict()`; empty where the file's headers are recognised.
    layout = models.JSONField(default=dict, db_default={})
    # Null where the layout is not a remembered one.
    layout_choice = models.ForeignKey(
        "survey.RosterLayoutChoice",
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
    )
    # Header and first values of each column, to choose the columns by. They are
    # personal data, which is deleted with the file.
    samples = models.JSONField(null=True)
    # `RosterReport.as_dict()`, without any cell of a person.
    report = models.JSONField(default=dict)
    # Why the file was refused, or has to be confirmed again.
    message = models.CharField(max_length=500, blank=True)
    # Whether so many people would be withdrawn from a school or district that the
    # confirmation has to be typed.
    must_be_typed = models.BooleanField(default=False)
    withdrawn = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)
    # The rejected rows as CSV, to correct and upload again.
    rejected_file = models.CharField(max_length=200, blank=True)
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    confirmed_at = models.DateTimeField(null=True)
    typed = models.CharField(max_length=200, blank=True)
    ended_at = models.DateTimeField(null=True)
    # Set where a feed's scan wrote the file; the scan is confirmed or cancelled then.
    scan = models.ForeignKey(
        "survey.FeedScan", on_delete=models.PROTECT, null=True, related_name="uploads"
    )

    objects = RosterUploadQuerySet.as_manager()

    class Meta:
        ordering = ("-uploaded_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(district=None) | Q(school=None),
                name="a_roster_is_for_one_place",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=("applying", "applied"))
                | Q(confirmed_at__isnull=False),
                name="a_roster_is_applied_only_when_confirmed",
            ),
            models.CheckConstraint(
                condition=Q(samples__isnull=True) | ~Q(file=""),
                name="samples_are_deleted_with_the_file",
            ),
        )
        indexes = (
            # The list of uploads, the newest first.
            models.Index(fields=("-uploaded_at", "-id"), name="rosters_newest"),
        )

    def __str__(self) -> str:
        return f"{self.name} for {self.administration}"

    @property
    def place(self) -> str:
        return str(self.school or self.district or _("The whole state"))


class RosterLayoutChoice(Table, district=Reference.MOVED, school=Reference.MOVED):
    """The columns that somebody chose for files with one header.

    Rows are never changed, so that an upload keeps naming the person who chose its
    columns; the newest one counts. A coordinator's choice counts for the own school
    only: it must not decide how the district's files are read.
    """

    # Both null: for files of the whole state.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, null=True, related_name="+"
    )
    school = models.ForeignKey(
        "accounts.School", on_delete=models.PROTECT, null=True, related_name="+"
    )
    # SHA-256 of the headers, without spaces, punctuation and case.
    header_key = models.CharField(max_length=64)
    # `RosterLayout.as_dict()`
    layout = models.JSONField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    chosen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(school=None) | Q(district__isnull=False),
                name="a_layout_for_a_school_names_its_district",
            ),
        )
        indexes = (
            # The newest choice for a header.
            models.Index(fields=("header_key", "-id"), name="layouts_by_header"),
        )

    def __str__(self) -> str:
        return f"{self.district or 'The whole state'}, {self.chosen_at:%Y-%m-%d}"


class RosterSchool(Table, school=Reference.MOVED):
    """Numbers of one upload's changes in one school."""

    upload = models.ForeignKey(
        RosterUpload, on_delete=models.CASCADE, related_name="schools"
    )
    # Null where the upload would create the school.
    school = models.ForeignKey(
        "accounts.School", on_delete=models.PROTECT, null=True, related_name="+"
    )
    name = models.CharField(max_length=200)
    district_name = models.CharField(max_length=200)
    # People who could log in before.
    people = models.PositiveIntegerField(default=0)
    added = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    # To this school from another, and from this school to another.
    moved = models.PositiveIntegerField(default=0)
    moved_away = models.PositiveIntegerField(default=0)
    # Withdrawn earlier, and now in the file again.
    back = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)
    withdrawn = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("district_name", "name")

    def __str__(self) -> str:
        return f"{self.name}: {self.upload}"

    @property
    def after(self) -> int:
        gained = self.added + self.moved + self.back
        return self.people + gained - self.withdrawn - self.moved_away

    @property
    def loses_many(self) -> bool:
        return is_more_than_a_tenth(self.withdrawn, self.people)


def is_more_than_a_tenth(withdrawn: int, people: int) -> bool:
    return withdrawn * 10 > people


class RosterRejection(Table, erasing=Erasing.WITH_FILES):
    """A rejected cell. Only the first ones are stored; the CSV file has all."""

    upload = models.ForeignKey(
        RosterUpload, on_delete=models.CASCADE, related_name="rejections"
    )
    row = models.PositiveIntegerField()
    column = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=500)
    text = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ("row", "pk")

    def __str__(self) -> str:
        return f"row {self.row}: {self.reason}"
