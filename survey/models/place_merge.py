"""Merges of two districts, or of two schools of one district."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.permissions import Capability, Permissions
from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Respondent


class PlaceMergeQuerySet(models.QuerySet["PlaceMerge"]):
    def visible_to(self, permissions: Permissions) -> PlaceMergeQuerySet:
        """Return all merges for the state, and those of schools for their district."""
        places = permissions.places(Capability.MANAGE_STAFF)
        if places.state:
            return self
        return self.filter(kind=PlaceMerge.Kind.SCHOOLS, district__in=places.districts)


class PlaceMerge(Table, district=Reference.MOVED):
    """A merge: checked in a dry run, confirmed and done (`survey.people.merging`)."""

    class Kind(models.TextChoices):
        DISTRICTS = "districts", _("Two districts")
        SCHOOLS = "schools", _("Two schools of one district")

    class State(models.TextChoices):
        CHECKING = "checking", _("being checked")
        CHECKED = "checked", _("ready to merge")
        REFUSED = "refused", _("cannot be merged")
        MERGING = "merging", _("being merged")
        # People are left of whom both records have been started.
        PARTLY = "partly", _("partly merged")
        MERGED = "merged", _("merged")
        CANCELLED = "cancelled", _("cancelled")

    class Keep(models.TextChoices):
        """The record that stays where a person has started with both."""

        BOTH = "", _("Neither: leave both records as they are")
        KEPT = "kept", _("The one of the district that stays")
        DUPLICATE = "duplicate", _("The one of the duplicate")

    kind = models.CharField(max_length=16, choices=Kind)
    # The district that stays, or the district of both schools.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, related_name="+"
    )
    # Without foreign keys: the duplicate is deleted, and the other may be one day.
    kept_id = models.BigIntegerField()
    kept_name = models.CharField(max_length=200)
    duplicate_id = models.BigIntegerField()
    duplicate_name = models.CharField(max_length=200)
    duplicate_code = models.CharField(max_length=64)
    keep = models.CharField(max_length=16, choices=Keep, blank=True, default=Keep.BOTH)
    state = models.CharField(max_length=16, choices=State, default=State.CHECKING)
    # `survey.people.merging.dry_run.MergeReport.as_dict()`
    report = models.JSONField(default=dict)
    # Why it cannot be merged, or has to be confirmed again.
    message = models.CharField(max_length=500, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    confirmed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = PlaceMergeQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=~Q(kept_id=models.F("duplicate_id")),
                name="a_place_is_not_merged_with_itself",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=("merging", "partly", "merged"))
                | Q(confirmed_at__isnull=False),
                name="places_are_merged_only_when_confirmed",
            ),
        )

    def __str__(self) -> str:
        return f"{self.duplicate_name} into {self.kept_name}"


class PairChoice(
    Table,
    reason="a bigint key of its own; deleted after a merge",
    erasing=Erasing.DELETED,
    respondent=Reference.STAYS,
):
    """Which record of one person stays, if both have been started."""

    merge = models.ForeignKey(
        PlaceMerge, on_delete=models.CASCADE, related_name="choices", db_index=False
    )
    # The record of the duplicate.
    respondent = models.ForeignKey(
        Respondent, on_delete=models.CASCADE, related_name="+"
    )
    keep = models.CharField(max_length=16, choices=PlaceMerge.Keep)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("merge", "respondent"),
                name="one_choice_for_each_person_of_a_merge",
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_keep_display()} for respondent {self.respondent_id}"
