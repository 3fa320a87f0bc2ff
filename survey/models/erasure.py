"""Erased people: who asked for it, what was deleted, and which IDs stay away."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy

from accounts.permissions import Capability, Permissions
from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Administration, Respondent, Role
from survey.models.opt_out import OptOut

# Somebody who has all of these in the person's district may report and erase.
ERASES = (
    Capability.SEE_IDENTITIES,
    Capability.SEE_RESPONSES,
    Capability.MANAGE_ROSTERS,
)


class ErasureQuerySet(models.QuerySet["Erasure"]):
    def visible_to(self, permissions: Permissions) -> QuerySet[Erasure]:
        places = permissions.places(*ERASES)
        if places.state:
            return self
        return self.filter(district__in=places.districts)


class Erasure(Table, district=Reference.MOVED):
    """An order to erase one person, or those of a list; see `survey.people.erasing`.

    Has no name, ID or free text, so that nothing of it has to be erased.
    """

    class Reason(models.TextChoices):
        REQUEST = "request", gettext_lazy("A request to delete the data")
        LEFT = "left", gettext_lazy("The person has left the school")
        CONTRACT = "contract", gettext_lazy("An agreement or contract has ended")
        MISTAKE = "mistake", gettext_lazy("The data should not have been stored")

    # All people are of one district, whose administrators see it.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, related_name="+"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    ordered_at = models.DateTimeField(default=timezone.now)
    requested_on = models.DateField()
    requested_by = models.CharField(max_length=16, choices=OptOut.RequestedBy)
    reason = models.CharField(max_length=16, choices=Reason)
    people = models.PositiveIntegerField()
    # When the last row was deleted, and the last file.
    erased_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    # Files that were deleted with the rows, for the certificate.
    files = models.PositiveIntegerField(default=0, db_default=0)
    # Of the digests of what is deleted, until the certificate is there.
    digest_key = models.BinaryField(max_length=32, null=True)

    objects = ErasureQuerySet.as_manager()

    class Meta:
        ordering = ("-ordered_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(completed_at=None) | Q(erased_at__isnull=False),
                name="files_are_deleted_after_the_rows",
            ),
        )
        indexes = (
            # What the task looks at again.
            models.Index(
                fields=("ordered_at",),
                condition=Q(completed_at=None),
                name="erasures_in_hand",
            ),
        )

    def __str__(self) -> str:
        return f"erasure {self.pk}"


class ErasedRecord(Table, erasing=Erasing.STAYS, respondent=Reference.STAYS):
    """A respondent who is to be erased, or was: then a number without a person."""

    # Without constraints: the administration's row is shared by all.
    respondent = models.OneToOneField(
        Respondent,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="+",
        db_constraint=False,
    )
    erasure = models.ForeignKey(
        Erasure, on_delete=models.CASCADE, related_name="records"
    )
    administration = models.ForeignKey(
        Administration, on_delete=models.CASCADE, related_name="+"
    )
    erased_at = models.DateTimeField(null=True)
    # Table -> rows that were deleted, and table -> their digest.
    rows = models.JSONField(default=dict)
    digests = models.JSONField(null=True)
    # Version of the key -> digests of the person's IDs, by which `replay_erasures`
    # finds the person in a restored database.
    id_digests = models.JSONField(null=True)

    def __str__(self) -> str:
        return f"erasing of respondent {self.respondent_id}"


class ErasedId(Table, district=Reference.ADAPTED):
    """A keyed digest of an erased person's ID: no roster brings the person back.

    Nobody can read the ID from it; `survey.people.erasing.erased_ids` compares.
    """

    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, related_name="+"
    )
    # As in panels, students, teachers and parents have IDs of their own.
    role = models.CharField(max_length=16, choices=Role)
    digest = models.BinaryField(max_length=32)
    key_version = models.PositiveSmallIntegerField()
    erased_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (
            # Rosters read those of their districts.
            models.UniqueConstraint(
                fields=("district", "role", "digest"),
                name="an_erased_id_is_remembered_once",
            ),
        )

    def __str__(self) -> str:
        return f"erased ID {self.pk}"
