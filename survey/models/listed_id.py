"""IDs of people who opt out or consent, and whom no roster had listed."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.permissions import Capability, Permissions
from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Administration, Identity
from survey.models.opt_out import OptOut


class ListedIdQuerySet(models.QuerySet["ListedId"]):
    def visible_to(self, permissions: Permissions) -> ListedIdQuerySet:
        """Return the IDs of lists for places where the user sees names."""
        places = permissions.places(
            Capability.SEE_IDENTITIES, Capability.MANAGE_ROSTERS
        )
        if places.state:
            return self
        return self.filter(
            Q(district__in=places.districts) | Q(school__in=places.schools)
        )

    def waiting(self) -> ListedIdQuerySet:
        """Return the IDs that count for nobody yet."""
        people = Identity.objects.filter(
            administration=OuterRef("administration"),
            district=OuterRef("district"),
            external_id=OuterRef("external_id"),
            respondent__awaits_consent=False,
        )
        opted_out = people.filter(respondent__opted_out_at__isnull=False)
        return self.exclude(
            Q(Exists(opted_out), kind=ListedId.Kind.OPT_OUT)
            | Q(Exists(people), kind=ListedId.Kind.CONSENT)
        )


class ListedId(
    Table,
    erasing=Erasing.DELETED,
    district=Reference.ADAPTED,
    school=Reference.ADAPTED,
):
    """An ID of a list that was not on the roster; see `survey.people.opt_outs`.

    The row stays once a person has it: a roster that is undone may delete the person.
    """

    class Kind(models.TextChoices):
        OPT_OUT = "opt out"
        CONSENT = "consent"

    kind = models.CharField(
        max_length=16, choices=Kind, default=Kind.OPT_OUT, db_default=Kind.OPT_OUT
    )

    administration = models.ForeignKey(
        Administration, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, related_name="+"
    )
    # Set for lists of one school: they count for that school's people only.
    school = models.ForeignKey(
        "accounts.School", on_delete=models.PROTECT, null=True, related_name="+"
    )
    external_id = models.CharField(max_length=128)
    # When, and by whom, the opt-out was asked for or the consent given.
    requested_on = models.DateField()
    requested_by = models.CharField(max_length=16, choices=OptOut.RequestedBy)
    reason = models.CharField(max_length=200, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    recorded_at = models.DateTimeField(default=timezone.now)

    objects = ListedIdQuerySet.as_manager()

    class Meta:
        constraints = (
            # Rosters look IDs up in it.
            models.UniqueConstraint(
                "administration",
                "district",
                "external_id",
                Coalesce("school", 0),
                "kind",
                name="an_id_is_on_each_list_once_for_each_place",
            ),
        )

    def __str__(self) -> str:
        return f"a listed ID of {self.administration_id}"
