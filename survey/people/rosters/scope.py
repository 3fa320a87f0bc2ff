"""Decide which schools a roster may name.

A school must lie in the place that the file was uploaded for, and among the
schools that its administration is offered in.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import School
from accounts.permissions import Capability, Permissions, Places
from survey.models import Administration, Denominator, RosterUpload

# The same words whether such a school exists or not, so that a file cannot be
# used to find out which schools other districts have.
NOT_YOURS = gettext_noop(
    "is not a school that you can upload rosters for. Check its code and"
    " name. Your district or state can add a school, and upload a file of"
    " several places"
)
NOT_OFFERED = gettext_noop("is not one of this survey round's schools")
OTHER_SCHOOL = gettext_noop(
    "is on another school's roster, or was. Ask your district to move this person"
)
NO_ROSTER = gettext_noop(
    "This survey round has no roster: anyone can take part with a school's link,"
    " and people on a roster could answer twice. Upload the roster"
    " to a survey round for people on a roster."
)
OTHER_ADDRESS = gettext_noop(
    "differs from the roster. E-mail address changes need the district"
)


DESTROYED = gettext_noop(
    "The names and access codes of this survey round were destroyed at the end of their"
    " retention period, so nobody can be added to it. Open another survey round."
)
# What `check_takes_roster` reads.
TAKES_ROSTER = ("denominator", "requires_consent", "identities_destroyed_at")


class RosterRefused(Exception):
    """The administration takes no roster; the message says why."""


def check_takes_roster(administration: Administration) -> None:
    """Raise RosterRefused where anyone can take part, or nobody any more."""
    if administration.denominator == Denominator.COUNT:
        raise RosterRefused(_(NO_ROSTER))
    if administration.identities_destroyed_at is not None:
        raise RosterRefused(_(DESTROYED))


@dataclass(frozen=True, slots=True)
class OfferedSchools:
    """The districts and schools in which an administration is offered."""

    owner: int | None = None
    districts: AbstractSet[int] = frozenset()
    schools: AbstractSet[int] = frozenset()

    def includes(self, district: int | None, school: int | None) -> bool:
        if self.districts or self.schools:
            return district in self.districts or school in self.schools
        return self.owner is None or district == self.owner


@dataclass(frozen=True, slots=True)
class RosterScope:
    """Where a roster may put people; without arguments everywhere."""

    places: Places = field(default_factory=lambda: Places(state=True))
    offered: OfferedSchools = field(default_factory=OfferedSchools)
    # Where the uploader may see schools, which can be more than the file's place.
    visible: Places = field(default_factory=Places)

    @property
    def is_single_schools(self) -> bool:
        return not self.places.state and not self.places.districts

    def rejection_reason(self, district: int | None, school: int | None) -> str:
        """Return why nobody can be invited there, or an empty string.

        None stands for a district or school that does not exist yet. A state
        may create both, a district its own schools.
        """
        places = self.places
        if not (
            places.state or district in places.districts or school in places.schools
        ):
            return NOT_YOURS
        return "" if self.offered.includes(district, school) else NOT_OFFERED

    def includes(self, district: int, school: int) -> bool:
        return not self.rejection_reason(district, school)


def scope_of_upload(
    upload: RosterUpload, permissions: Permissions
) -> RosterScope | None:
    """Return the scope of an upload, or None without permission for its place.

    2 statements.
    """
    places = permissions.places(Capability.MANAGE_ROSTERS)
    if upload.school is not None:
        allowed = places.has_school(upload.school)
        uploaded_for = Places(schools=frozenset((upload.school.pk,)))
    elif upload.district_id is not None:
        allowed = places.has_district(upload.district_id)
        uploaded_for = Places(districts=frozenset((upload.district_id,)))
    else:
        allowed, uploaded_for = places.state, Places(state=True)
    if not allowed:
        return None
    return RosterScope(uploaded_for, offered_schools(upload.administration), places)


def offered_schools(administration: Administration) -> OfferedSchools:
    return OfferedSchools(
        administration.district_id,
        frozenset(administration.districts.values_list("pk", flat=True)),
        frozenset(administration.schools.values_list("pk", flat=True)),
    )


def schools_to_choose(scope: RosterScope) -> QuerySet[School]:
    """Return the open schools in which a roster may put people."""
    schools = School.objects.filter(closed_at=None, district__closed_at=None)
    places, offered = scope.places, scope.offered
    if not places.state:
        schools = schools.filter(
            Q(district__in=places.districts) | Q(pk__in=places.schools)
        )
    if offered.districts or offered.schools:
        schools = schools.filter(
            Q(district__in=offered.districts) | Q(pk__in=offered.schools)
        )
    elif offered.owner is not None:
        schools = schools.filter(district=offered.owner)
    return schools.order_by("name", "pk")


def schools_elsewhere(scope: RosterScope) -> QuerySet[School]:
    """Return the open schools outside the roster's place that the uploader may see."""
    places, visible = scope.places, scope.visible
    schools = School.objects.filter(closed_at=None, district__closed_at=None)
    if places.state or not (visible.state or visible.districts - places.districts):
        return schools.none()
    if not visible.state:
        schools = schools.filter(district__in=visible.districts)
    schools = schools.exclude(
        Q(district__in=places.districts) | Q(pk__in=places.schools)
    )
    return schools.order_by("name", "pk")
