"""Queries for administrations, their schools and their people."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404

from accounts.models import District, School
from accounts.permissions import Capability, Permissions, Places
from survey.instrument.definitions.ownership import offerable_for
from survey.models import Administration, PublishedSurvey, Respondent

# Names listed in one message.
MAX_NAMES = 10
MAX_NAME_LENGTH = 64
# A module of a district has no people of its own to invite: they are those of the
# state's round that it follows.
ABOUT_PEOPLE = (Capability.SEE_IDENTITIES, Capability.MANAGE_ROSTERS)


class AdministrationNotFound(LookupError):
    """No administration has this name; the message lists those that exist."""


def get_administration(name: str) -> Administration:
    """Return an administration by its short name, with its published survey."""
    administrations = Administration.objects.order_by("-opens_at")
    administration = (
        administrations.select_related("published").filter(name=name).first()
    )
    if administration is None:
        names = ", ".join(administrations.values_list("name", flat=True)[:MAX_NAMES])
        advice = f"Choose one of these: {names}" if names else "Open one first"
        raise AdministrationNotFound(f"No administration is named {name}. {advice}.")
    return administration


def administrations_for(
    permissions: Permissions, capability: Capability
) -> QuerySet[Administration]:
    """Return administrations offered where the user has the capability.

    A module only in its own district, and nowhere where people are invited.
    """
    administrations = administrations_in(permissions.places(capability))
    if capability in ABOUT_PEOPLE:
        return administrations.filter(module_of=None)
    return administrations


def administrations_in(places: Places) -> QuerySet[Administration]:
    """Return administrations offered in one of these places."""
    administrations = Administration.objects.all()
    if places.state:
        # What a district asks in a module is for itself alone.
        return administrations.filter(
            Q(module_of=None) | Q(district__in=places.districts)
        )
    if not places:
        return administrations.none()
    own_schools = Q(schools__district__in=places.districts)
    own_districts: Collection[int] | QuerySet[District] = places.districts
    if places.schools:
        own_schools |= Q(schools__in=places.schools)
        # The districts of single schools too: an administration may be offered
        # in all schools of a district.
        own_districts = District.objects.filter(
            Q(pk__in=places.districts) | Q(schools__in=places.schools)
        )
    everywhere = Q(districts=None, schools=None)
    return administrations.filter(
        pk__in=administrations.filter(
            everywhere & (Q(district=None) | Q(district__in=own_districts))
            | Q(districts__in=own_districts)
            | own_schools
        ).values("pk")
    )


def with_titles(
    administrations: QuerySet[Administration],
) -> QuerySet[Administration]:
    """Join what `Administration.title` reads, without the survey's large columns."""
    return administrations.select_related(
        "published__survey", "wave", "district"
    ).defer("published__definition", "published__survey__source")


def administration_or_404(
    permissions: Permissions, pk: int, capability: Capability
) -> Administration:
    """Return an administration offered where the user has the capability.

    With what its title needs. 1 statement.
    """
    return get_object_or_404(
        with_titles(administrations_for(permissions, capability)), pk=pk
    )


def own_administration_or_404(
    permissions: Permissions, pk: int, *, with_modules: bool = False
) -> Administration:
    """Return an administration that the user may change, close and reopen.

    A module has dates, privacy and people of the round that it follows: it is found
    only where the page suits it.
    """
    administration = administration_or_404(permissions, pk, Capability.SEE_RATES)
    if administration.module_of_id and not with_modules:
        raise Http404
    if not may_manage(permissions, administration):
        raise Http404
    return administration


def may_manage(permissions: Permissions, administration: Administration) -> bool:
    """Return whether the user may change, close and reopen it."""
    if administration.module_of_id:
        places = permissions.places(Capability.MANAGE_SURVEYS)
        return administration.district_id in places.districts
    return permissions.may_own(administration.district_id)


def surveys_to_offer(permissions: Permissions) -> QuerySet[PublishedSurvey]:
    """Return the surveys that a new administration may use, newest first."""
    # Definitions and workbooks are large, and lists do not show them.
    return (
        offerable_for(permissions)
        .select_related("survey")
        .defer("definition", "survey__source")
        .order_by("survey__name", "-published_at")
    )


def schools_offered(
    owner: District | None,
    districts: Iterable[District],
    schools: Iterable[School],
    *,
    with_closed: bool = False,
) -> QuerySet[School]:
    """Return the chosen schools; if none are chosen, all schools of the owner.

    Closed schools take nobody any more, and are left out.
    """
    candidates = (
        School.objects.all() if with_closed else School.objects.filter(closed_at=None)
    )
    district_ids = [district.pk for district in districts]
    school_ids = [school.pk for school in schools]
    if district_ids or school_ids:
        return candidates.filter(Q(district__in=district_ids) | Q(pk__in=school_ids))
    if owner is not None:
        return candidates.filter(district=owner)
    return candidates


def schools_of(administration: Administration) -> QuerySet[School]:
    """Return the schools in which an administration is offered. 2 statements."""
    return schools_offered(
        administration.district,
        administration.districts.all(),
        administration.schools.all(),
    )


def schools_listed(administration: Administration, now: datetime) -> QuerySet[School]:
    """Return the schools from which an administration expects people. 2 statements.

    A school that a roster of another administration has added since the opening is
    none of them, unless it was chosen. Nothing changes after the end: neither that,
    nor that a school has closed.
    """
    chosen = list(administration.schools.all())
    schools = schools_offered(
        administration.district,
        administration.districts.all(),
        chosen,
        with_closed=True,
    )
    return schools.filter(
        Q(closed_at=None) | Q(closed_at__gt=min(now, administration.closes_at)),
        Q(added_at=None)
        | Q(added_at__lte=administration.opens_at)
        | Q(pk__in=[school.pk for school in chosen]),
    )


def invited_people(administration: Administration) -> QuerySet[Respondent]:
    """Return all people on the roster who were not withdrawn."""
    return administration.respondents.on_roster().filter(withdrawn_at=None)


@dataclass(frozen=True, slots=True)
class ProgressCounts:
    """Numbers of people by progress; withdrawn people are in none."""

    not_started: int
    in_progress: int
    finished: int


def count_progress(administration: Administration) -> ProgressCounts:
    """Count all people in the figures. 1 statement, over all of them.

    Where completion is confidential, a single change of the roster must not show
    in these numbers: see `CountedGroup`.
    """
    people = invited_people(administration)
    if administration.is_completion_confidential:
        people = administration.respondents.on_roster().filter(
            Q(counted=None, withdrawn_at=None) | Q(counted__school__isnull=False)
        )
    counts = people.aggregate(
        invited=Count("pk"),
        started=Count("started_at"),
        finished=Count("completed_at", filter=Q(declined_at=None)),
    )
    return ProgressCounts(
        not_started=counts["invited"] - counts["started"],
        in_progress=counts["started"] - counts["finished"],
        finished=counts["finished"],
    )


def has_people(administration: Administration) -> bool:
    """Return whether anyone was invited, or began with an open code."""
    return administration.respondents.exists()


def has_started(administration: Administration) -> bool:
    return administration.respondents.exclude(started_at=None).exists()
