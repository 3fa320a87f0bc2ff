"""Decide which capabilities a user has, and in which places.

A capability applies to places: the whole state, districts or single schools.
Querysets are filtered by these places, and an object elsewhere is answered
with 404, as if it did not exist. This is the only module that knows what a
role may do.

`is_superuser` opens Django's admin and gives no capability here: engineers who
need the console get a membership, which shows up in the audit log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from enum import Enum, auto

from django.db.models import Q, QuerySet

from accounts.models import District, Membership, School, User
from accounts.time_zones import zone_named

Role = Membership.Role


class Capability(Enum):
    SEE_RATES = auto()
    # Answers, never together with names.
    SEE_RESPONSES = auto()
    # How groups answered, without what is hidden, once this is shared.
    SEE_RESULTS = auto()
    # Show results to everybody, or withdraw them.
    PUBLISH_RESULTS = auto()
    # Names, student numbers, access codes.
    SEE_IDENTITIES = auto()
    MANAGE_ROSTERS = auto()
    # Feeds bring the people of whole districts, and hold passwords of their systems.
    MANAGE_FEEDS = auto()
    # Surveys, waves and administrations belong to the state or a district.
    MANAGE_SURVEYS = auto()
    MANAGE_STAFF = auto()
    SEE_AUDIT = auto()
    # Approve research projects, whose files can be linked with other data.
    MANAGE_PROJECTS = auto()


C = Capability
_ADMINISTRATOR = frozenset(Capability)
CAPABILITIES: Mapping[str, frozenset[Capability]] = {
    Role.STATE: _ADMINISTRATOR,
    Role.DISTRICT: _ADMINISTRATOR - {C.PUBLISH_RESULTS, C.MANAGE_PROJECTS},
    # Progress, login cards and people of their own school, but no answers of persons.
    Role.COORDINATOR: frozenset(
        (C.SEE_RATES, C.SEE_RESULTS, C.SEE_IDENTITIES, C.MANAGE_ROSTERS)
    ),
    Role.ANALYST: frozenset((C.SEE_RATES, C.SEE_RESULTS, C.SEE_RESPONSES)),
}
# Capabilities that require a second factor.
SECOND_FACTOR = frozenset(
    (
        *(C.SEE_IDENTITIES, C.SEE_RESPONSES, C.PUBLISH_RESULTS),
        *(C.MANAGE_FEEDS, C.MANAGE_STAFF, C.MANAGE_PROJECTS),
    )
)
# Roles that a role may appoint and dismiss, in its own places.
APPOINTS: Mapping[str, frozenset[str]] = {
    Role.STATE: frozenset(Role),
    Role.DISTRICT: frozenset((Role.DISTRICT, Role.COORDINATOR, Role.ANALYST)),
}


@dataclass(frozen=True, slots=True)
class Places:
    """The whole state, or these districts and these single schools."""

    state: bool = False
    districts: frozenset[int] = frozenset()
    schools: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return self.state or bool(self.districts or self.schools)

    def has_district(self, district_id: int) -> bool:
        return self.state or district_id in self.districts

    def has_school(self, school: School) -> bool:
        return self.has_district(school.district_id) or school.pk in self.schools


class Permissions:
    """The capabilities of one user at this moment. 1 statement, on creation."""

    def __init__(self, user: User) -> None:
        self.memberships: tuple[Membership, ...] = ()
        if user.is_authenticated and user.is_active:
            current = Membership.objects.current().filter(user=user)
            self.memberships = tuple(
                current.select_related("district", "school__district")
            )

    def places(self, *capabilities: Capability) -> Places:
        """Return the places where a single role has all of these capabilities."""
        needed = frozenset(capabilities)
        return _places_of(
            membership
            for membership in self.memberships
            if needed <= CAPABILITIES[membership.role]
        )

    def cover(self, places: Places, *capabilities: Capability) -> bool:
        """Test if the user has these capabilities in all of `places`.

        1 statement for schools.
        """
        own_places = self.places(*capabilities)
        if own_places.state or not places:
            return own_places.state
        if places.state or not places.districts <= own_places.districts:
            return False
        return (
            School.objects.filter(pk__in=places.schools)
            .filter(_inside(own_places))
            .count()
        ) == len(places.schools)

    def has(self, capability: Capability) -> bool:
        """Test if the user has this capability in any place."""
        return bool(self.places(capability))

    def may_own(self, district_id: int | None) -> bool:
        """Return whether the user manages surveys of a district, or of the state.

        The same holds for waves and administrations; None is the state.
        """
        places = self.places(Capability.MANAGE_SURVEYS)
        return places.state if district_id is None else places.has_district(district_id)

    @property
    def needs_second_factor(self) -> bool:
        return any(self.has(capability) for capability in SECOND_FACTOR)

    @property
    def time_zone(self) -> tzinfo:
        """Return the zone of the user's districts; the state's where they differ."""
        names = {_time_zone_of(membership) for membership in self.memberships}
        return zone_named(names.pop() if len(names) == 1 else "")

    def schools(self, *capabilities: Capability) -> QuerySet[School]:
        places = self.places(*capabilities)
        if places.state:
            return School.objects.all()
        return School.objects.filter(_inside(places))

    def districts(self, *capabilities: Capability) -> QuerySet[District]:
        """Return whole districts. Coordinators have none."""
        places = self.places(*capabilities)
        if places.state:
            return District.objects.all()
        return District.objects.filter(pk__in=places.districts)

    def may_appoint(
        self, role: str, *, district: District | None, school: School | None
    ) -> bool:
        """Test if the user may appoint and dismiss for this role in this place."""
        # A user who administers one district may coordinate a school in another:
        # only the places of the roles that appoint this one count.
        places = _places_of(
            membership
            for membership in self.memberships
            if role in APPOINTS.get(membership.role, ())
        )
        if school is not None:
            return places.has_school(school)
        if district is not None:
            return places.has_district(district.pk)
        return places.state


def _time_zone_of(membership: Membership) -> str:
    school, district = membership.school, membership.district
    district = school.district if school else district
    return district.time_zone if district else ""


def _inside(places: Places) -> Q:
    return Q(district_id__in=places.districts) | Q(pk__in=places.schools)


def _places_of(memberships: Iterable[Membership]) -> Places:
    state, districts, schools = False, set(), set()
    for membership in memberships:
        if membership.school_id is not None:
            schools.add(membership.school_id)
        elif membership.district_id is not None:
            districts.add(membership.district_id)
        else:
            state = True
    return Places(state, frozenset(districts), frozenset(schools))
