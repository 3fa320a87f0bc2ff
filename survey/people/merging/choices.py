"""Choose for single people which record stays, if both have been started."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from survey.models import (
    Administration,
    Identity,
    PairChoice,
    PlaceMerge,
    Respondent,
    Role,
)

# Administration and ID of a person, of which a district has one record.
PersonKey = tuple[int, str]


def people_to_decide(merge: PlaceMerge) -> QuerySet[Respondent]:
    """Return people of the duplicate who have started with both of their records.

    Only where staff may see who has started. For the others, one choice for all is
    made without seeing them.
    """
    if merge.kind != PlaceMerge.Kind.DISTRICTS:
        return Respondent.objects.none()
    shown = Administration.objects.filter(coordinators_see_finished=True).exclude(
        role=Role.TEACHER
    )
    started_twin = Identity.objects.filter(
        administration=OuterRef("administration"),
        district=merge.kept_id,
        external_id=OuterRef("identity__external_id"),
        respondent__started_at__isnull=False,
    )
    return Respondent.objects.filter(
        Exists(started_twin),
        identity__district=merge.duplicate_id,
        administration__in=shown,
        started_at__isnull=False,
    )


def other_records(
    merge: PlaceMerge, people: Collection[Respondent]
) -> dict[PersonKey, Respondent]:
    """Return their records in the district that stays. 1 statement."""
    rows = Identity.objects.filter(
        district=merge.kept_id,
        administration__in={person.administration_id for person in people},
        external_id__in={person.identity.external_id for person in people},
    ).select_related("respondent__school")
    return {(row.administration_id, row.external_id): row.respondent for row in rows}


def choices_of(merge: PlaceMerge) -> dict[int, str]:
    """Return what is kept, by the respondent of the duplicate. 1 statement."""
    return dict(merge.choices.values_list("respondent", "keep"))


@transaction.atomic
def store_choices(merge: PlaceMerge, keep_of: Mapping[int, str]) -> int:
    """Replace the choices for these people; return for how many.

    An empty text removes a choice. People who have no two records that have been
    started are left out.
    """
    people = people_to_decide(merge).filter(pk__in=list(keep_of))
    known = list(people.values_list("pk", flat=True))
    PairChoice.objects.filter(merge=merge, respondent__in=known).delete()
    PairChoice.objects.bulk_create(
        PairChoice(merge=merge, respondent_id=pk, keep=keep_of[pk])
        for pk in known
        if keep_of[pk]
    )
    return len(known)
