"""Decide whose scores a user may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from accounts.http import StaffRequest
from accounts.models import District, School
from accounts.permissions import Permissions, Places
from reports.models import SchoolRate
from reports.rates.rate_lines import RateLine
from reports.rates.visible_rates import in_state, rates_for
from reports.releases.levels import LEVELS, Place
from reports.results.access import administration_or_404, capability_for
from reports.results.comments import may_review
from survey.models import Administration

MAX_KEY = 2**63


def places_with_scores(
    permissions: Permissions, administration: Administration
) -> Places:
    return permissions.places(capability_for(administration))


def districts_with_scores(
    permissions: Permissions, administration: Administration
) -> QuerySet[District]:
    """Return the districts that the user sees as a whole."""
    return permissions.districts(capability_for(administration))


def schools_with_scores(
    permissions: Permissions, administration: Administration
) -> QuerySet[SchoolRate]:
    """Return the response rates of the schools whose scores the user may see."""
    rows = rates_for(permissions, administration)
    places = places_with_scores(permissions, administration)
    if places.state:
        return rows
    return rows.filter(
        Q(district_id__in=places.districts) | Q(school_id__in=places.schools)
    )


@dataclass(frozen=True, slots=True)
class ReachedSchool(RateLine):
    """The line of a school that has reached its threshold, in lists of all schools.

    Without what these do not show: making a `SchoolRateLine` for each of 4,000 schools
    takes 0.2 s.
    """

    key: int
    code: str
    district: str

    @property
    def place(self) -> Place:
        return LEVELS.SCHOOL.value, self.key


def reached_schools(rows: QuerySet[SchoolRate]) -> list[ReachedSchool]:
    """Return the schools of these rows that have reached their threshold. 1 statement.

    As `rates_for` shows them, so without those whose numbers are hidden.
    """
    return [
        ReachedSchool(*row)
        for row in in_state(rows, "reached").values_list(
            *("school__name", "eligible", "shown_started", "shown_finished"),
            *("school_id", "school__code", "school__district__name"),
        )
    ]


@dataclass(frozen=True)
class ScoresScope:
    """The administration, districts and schools of a page about scores.

    They are limited to what the user may see.
    """

    administration: Administration
    # Whether the user sees all districts.
    is_whole_state: bool
    # Those that the user sees as a whole, and the chosen one.
    districts: Sequence[District]
    district: District | None
    # Their response rates.
    schools: QuerySet[SchoolRate]
    # Whether the user sees the quality of the measures, which is that of all answers.
    sees_quality: bool

    @classmethod
    def of(cls, request: StaffRequest, pk: int) -> ScoresScope:
        """Read what the address asks for; Http404 for places of others.

        2 statements.
        """
        administration = administration_or_404(request.permissions, pk)
        seen = districts_with_scores(request.permissions, administration)
        districts = list(seen.order_by("name"))
        asked = request.GET.get("district", "")
        district = next(
            (candidate for candidate in districts if str(candidate.pk) == asked), None
        )
        if asked and district is None:
            raise Http404
        schools = schools_with_scores(request.permissions, administration)
        if district is not None:
            schools = schools.filter(district=district)
        places = places_with_scores(request.permissions, administration)
        return cls(
            administration,
            places.state,
            districts,
            district,
            schools,
            may_review(request.permissions, administration),
        )

    @property
    def has_districts(self) -> bool:
        """Test that schools are of several districts, and may share their names."""
        return len(self.districts) > 1 and self.district is None

    @property
    def place_name(self) -> str:
        if self.district:
            return str(self.district)
        return str(self.districts[0]) if len(self.districts) == 1 else _("All schools")


def school_or_404(
    permissions: Permissions, administration: Administration, pk: int
) -> School:
    if pk >= MAX_KEY:
        raise Http404
    schools = permissions.schools(capability_for(administration))
    return get_object_or_404(schools.select_related("district"), pk=pk)
