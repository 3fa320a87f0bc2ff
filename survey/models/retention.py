"""How long data of a round are kept, who holds them, and what was destroyed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy, pgettext_lazy

from accounts.permissions import Capability, Permissions
from accounts.tables import Reference, Table
from survey.models.administration import Administration

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

# A person of the state or a district who has it there.
MANAGES = Capability.MANAGE_SURVEYS


class DataKind(models.TextChoices):
    """What is destroyed at once."""

    IDENTITIES = "identities", gettext_lazy("Names and access codes")
    ANSWERS = "answers", gettext_lazy("Answers")


class RetentionQuerySet(models.QuerySet["Retention"]):
    def of_round_and_modules(self, administration: Administration) -> RetentionQuerySet:
        of_round = Q(administration=administration)
        return self.filter(of_round | Q(administration__module_of=administration))

    def forget_warnings(self) -> None:
        """Let administrators be warned anew, a month before data are destroyed."""
        self.update(identities_warned_at=None, answers_warned_at=None)


class Retention(Table):
    """The periods of one administration, and which warnings were sent.

    Only the functions of `survey.people.retention` change it.
    """

    administration = models.OneToOneField(
        Administration,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="retention",
    )
    # Days after the closing; null: as many as the owner's settings say.
    identities_days = models.PositiveIntegerField(null=True)
    answers_days = models.PositiveIntegerField(null=True)
    # When the owner's administrators were warned; null: not yet, or not of this date.
    identities_warned_at = models.DateTimeField(null=True)
    answers_warned_at = models.DateTimeField(null=True)

    objects = RetentionQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=(Q(identities_days=None) | Q(identities_days__gte=1))
                & (Q(answers_days=None) | Q(answers_days__gte=1)),
                name="data_are_kept_for_a_day_at_least",
            ),
        )

    def __str__(self) -> str:
        return f"retention of {self.administration_id}"

    def days(self, kind: str) -> int | None:
        days: int | None = getattr(self, f"{kind}_days")
        return days

    def warned_at(self, kind: str) -> datetime | None:
        moment: datetime | None = getattr(self, f"{kind}_warned_at")
        return moment


class LegalHoldQuerySet(models.QuerySet["LegalHold"]):
    def current(self) -> LegalHoldQuerySet:
        return self.filter(lifted_at=None)

    def of_rounds(self, administrations: Collection[int]) -> LegalHoldQuerySet:
        """Return holds on these rounds, or on the state's round of these modules."""
        state_rounds = Administration.objects.filter(modules__in=administrations)
        return self.filter(
            Q(administration__in=administrations) | Q(administration__in=state_rounds)
        )

    def visible_to(self, permissions: Permissions) -> LegalHoldQuerySet:
        """Return all holds for the state; else those of the state and own districts."""
        places = permissions.places(MANAGES)
        if places.state:
            return self
        return self.filter(Q(district=None) | Q(district__in=places.districts))


class LegalHold(Table, district=Reference.MOVED):
    """While it is on, nothing of an administration is destroyed, and nobody erased."""

    administration = models.ForeignKey(
        Administration, on_delete=models.CASCADE, related_name="holds"
    )
    # Whose people it covers when one of them is to be erased; null: everybody's.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, null=True, related_name="+"
    )
    # Whom to ask, such as "Office of the general counsel", and why.
    holder = models.CharField(max_length=200)
    reason = models.CharField(max_length=500)
    placed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    placed_at = models.DateTimeField(default=timezone.now)
    lifted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    lifted_at = models.DateTimeField(null=True)
    lifted_reason = models.CharField(max_length=500, blank=True)

    objects = LegalHoldQuerySet.as_manager()

    class Meta:
        ordering = ("-placed_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(lifted_at=None, lifted_by=None)
                | Q(lifted_at__isnull=False, lifted_by__isnull=False),
                name="a_lifted_hold_says_who_lifted_it",
            ),
        )
        indexes = (
            # What destroying and erasing read first.
            models.Index(
                fields=("administration",),
                condition=Q(lifted_at=None),
                name="holds_of_an_administration",
            ),
        )

    def __str__(self) -> str:
        return f"hold of {self.holder}"


class DestructionQuerySet(models.QuerySet["Destruction"]):
    def visible_to(self, permissions: Permissions) -> DestructionQuerySet:
        """Return those of administrations that the user's places own."""
        places = permissions.places(MANAGES)
        if places.state:
            return self
        return self.filter(administration__district__in=places.districts)

    def without_counts(self) -> DestructionQuerySet:
        """Exclude counts of what would be destroyed."""
        return self.filter(state__in=Destruction.ORDERED)


class Destruction(Table):
    """What was destroyed of an administration, or counted before.

    Has numbers and digests of rows, and nothing of a person.
    """

    class State(models.TextChoices):
        # A trial, which changes nothing.
        COUNTING = "counting", pgettext_lazy("destruction", "being counted")
        COUNTED = "counted", pgettext_lazy("destruction", "counted")
        RUNNING = "running", pgettext_lazy("destruction", "being destroyed")
        DONE = "done", pgettext_lazy("destruction", "destroyed")

    ORDERED = (State.RUNNING, State.DONE)

    # It stays as long as the administration, which nobody can remove any more.
    administration = models.ForeignKey(
        Administration, on_delete=models.CASCADE, related_name="destructions"
    )
    kind = models.CharField(max_length=16, choices=DataKind)
    state = models.CharField(max_length=16, choices=State)
    # Null: the retention period ended.
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    reason = models.CharField(max_length=500, blank=True)
    ordered_at = models.DateTimeField(default=timezone.now)
    destroyed_at = models.DateTimeField(null=True)
    # The last person whose rows are destroyed: an interrupted job goes on after it.
    position = models.BigIntegerField(default=0)
    # Table -> {"rows": 2, "digest": "…"}: see `survey.people.retention.row_digests`.
    tables = models.JSONField(default=dict)
    # Of the digests, until the journal of destructions has it.
    digest_key = models.BinaryField(max_length=32, null=True)
    files = models.PositiveIntegerField(default=0)

    objects = DestructionQuerySet.as_manager()

    class Meta:
        ordering = ("-ordered_at", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=("administration", "kind"),
                condition=Q(state__in=("running", "done")),
                name="data_of_a_kind_are_destroyed_once",
            ),
            models.CheckConstraint(
                condition=Q(state="done", destroyed_at__isnull=False)
                | (~Q(state="done") & Q(destroyed_at=None)),
                name="destroyed_data_say_since_when",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} of {self.administration}"

    @property
    def rows(self) -> int:
        return sum(table["rows"] for table in self.tables.values())
