"""Administrations that are there: by name, by place, and where each stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet
from django.utils.text import slugify

from accounts.models import District, School
from accounts.permissions import Capability, Permissions
from survey.definitions.ownership import offerable_for
from survey.models import Administration, PublishedSurvey, Respondent

MOST_NAMED = 10
LONGEST_NAME = 64


class AdministrationNotFound(LookupError):
    """Says which ones there are."""


def administration_called(name: str) -> Administration:
    """With its published survey; raises AdministrationNotFound."""
    known = Administration.objects.order_by("-opens_at")
    found = known.select_related("published").filter(name=name).first()
    if found is None:
        names = ", ".join(known.values_list("name", flat=True)[:MOST_NAMED])
        raise AdministrationNotFound(
            f"No administration is called {name}. There"
            f" {f'are these: {names}' if names else 'is none yet: open one first'}."
        )
    return found


def administrations_for(
    permissions: Permissions, capability: Capability
) -> QuerySet[Administration]:
    """Those that are offered in a place where somebody has the capability."""
    places = permissions.places(capability)
    known = Administration.objects.all()
    if places.state:
        return known
    if not places:
        return known.none()
    own_schools = School.objects.filter(
        Q(district__in=places.districts) | Q(pk__in=places.schools)
    )
    # Also of a coordinator's district: it may be offered in all its schools.
    own_districts = District.objects.filter(
        Q(pk__in=places.districts) | Q(schools__in=places.schools)
    )
    everywhere = Q(districts=None, schools=None)
    return known.filter(
        pk__in=known.filter(
            everywhere & (Q(district=None) | Q(district__in=own_districts))
            | Q(districts__in=own_districts)
            | Q(schools__in=own_schools)
        ).values("pk")
    )


def may_manage(permissions: Permissions, administration: Administration) -> bool:
    """Change its window and its people's survey, and close it."""
    return permissions.may_own(administration.district_id)


def surveys_to_offer(permissions: Permissions) -> QuerySet[PublishedSurvey]:
    """With what is to be read of them: neither definition nor workbook."""
    return (
        offerable_for(permissions)
        .select_related("survey")
        .defer("definition", "survey__source")
        .order_by("survey__name", "-published_at")
    )


def schools_offered(
    owner: District | None, districts: Iterable[District], schools: Iterable[School]
) -> QuerySet[School]:
    """Where neither is named, it is all of the owner's."""
    whole, single = [one.pk for one in districts], [one.pk for one in schools]
    if whole or single:
        return School.objects.filter(Q(district__in=whole) | Q(pk__in=single))
    if owner is not None:
        return School.objects.filter(district=owner)
    return School.objects.all()


def invited_people(administration: Administration) -> QuerySet[Respondent]:
    """Return everyone on the roster who was not withdrawn."""
    return administration.respondents.filter(withdrawn_at=None)


@dataclass(frozen=True, slots=True)
class Standing:
    """How many of the invited are where; withdrawn ones are nowhere."""

    not_started: int
    in_the_middle: int
    finished: int


def standing(administration: Administration) -> Standing:
    """1 statement, over all of them."""
    invited = administration.respondents.filter(withdrawn_at=None)
    counted = invited.aggregate(
        invited=Count("pk"), started=Count("started_at"), finished=Count("completed_at")
    )
    return Standing(
        not_started=counted["invited"] - counted["started"],
        in_the_middle=counted["started"] - counted["finished"],
        finished=counted["finished"],
    )


def somebody_was_invited(administration: Administration) -> bool:
    return administration.respondents.exists()


def somebody_has_started(administration: Administration) -> bool:
    return administration.respondents.exclude(started_at=None).exists()


def suggest_name(*, role: str, wave: str = "", district: District | None = None) -> str:
    """Made of the owner, the wave and the role, and not taken yet."""
    parts = (district.code if district else "", wave, f"{role}s" if role else "")
    whole = slugify(" ".join(parts))[: LONGEST_NAME - 4].strip("-_") or "survey"
    taken = set(
        Administration.objects.filter(name__startswith=whole).values_list(
            "name", flat=True
        )
    )
    free = (f"{whole}-{n}" if n > 1 else whole for n in range(1, len(taken) + 2))
    return next(name for name in free if name not in taken)
