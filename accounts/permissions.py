"""Who may see and do what, and where. Every other module asks this one.

A capability is held in places: the whole state, districts, single schools.
Lists are filtered by `schools_of`; a single thing outside of it is a 404 to
whoever asks, as if there were none. Roles change here and nowhere else.

An engineer's `is_superuser` opens Django's admin and gives nothing here: who
needs the console has a membership, which the audit can name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from django.db.models import Q, QuerySet

from accounts.models import District, Membership, School, User

Role = Membership.Role


class Capability(Enum):
    SEE_RATES = auto()
    # Answers, never beside a name.
    SEE_RESPONSES = auto()
    # Names, student numbers, access codes.
    SEE_IDENTITIES = auto()
    MANAGE_ROSTERS = auto()
    # Surveys, waves and administrations are the state's or a district's.
    MANAGE_SURVEYS = auto()
    MANAGE_STAFF = auto()
    SEE_AUDIT = auto()


C = Capability
_ADMINISTRATOR = frozenset(Capability)
CAPABILITIES: Mapping[str, frozenset[Capability]] = {
    Role.STATE: _ADMINISTRATOR,
    Role.DISTRICT: _ADMINISTRATOR,
    # Who has finished, login cards, their own people; no answer of anybody's.
    Role.COORDINATOR: frozenset((C.SEE_RATES, C.SEE_IDENTITIES, C.MANAGE_ROSTERS)),
    Role.ANALYST: frozenset((C.SEE_RATES, C.SEE_RESPONSES)),
}
# Whoever has one of these logs in with a second factor.
SECOND_FACTOR = frozenset((C.SEE_IDENTITIES, C.SEE_RESPONSES, C.MANAGE_STAFF))
# Whom a role may appoint and dismiss, in its own places.
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
    """One user's, as they stand now. 1 statement, when it is made."""

    def __init__(self, user: User) -> None:
        self.memberships: tuple[Membership, ...] = ()
        # Who was dismissed or has not logged in has none.
        if user.is_authenticated and user.is_active:
            current = Membership.objects.current().filter(user=user)
            self.memberships = tuple(current.select_related("district", "school"))

    def places(self, *capabilities: Capability) -> Places:
        """Where one role has all of these: two that have one each are not enough."""
        needed = frozenset(capabilities)
        return _places(
            one for one in self.memberships if needed <= CAPABILITIES[one.role]
        )

    def cover(self, places: Places, *capabilities: Capability) -> bool:
        """Whether these are held in all of `places`. 1 statement for schools."""
        own = self.places(*capabilities)
        if own.state or not places:
            return own.state
        if places.state or not places.districts <= own.districts:
            return False
        return (
            School.objects.filter(pk__in=places.schools).filter(_inside(own)).count()
        ) == len(places.schools)

    def has(self, capability: Capability) -> bool:
        """Anywhere at all."""
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

    def schools(self, *capabilities: Capability) -> QuerySet[School]:
        places = self.places(*capabilities)
        if places.state:
            return School.objects.all()
        return School.objects.filter(_inside(places))

    def districts(self, *capabilities: Capability) -> QuerySet[District]:
        """Whole ones: who works in a school does not see its district."""
        places = self.places(*capabilities)
        if places.state:
            return District.objects.all()
        return District.objects.filter(pk__in=places.districts)

    def may_appoint(
        self, role: str, *, district: District | None, school: School | None
    ) -> bool:
        """Appoint or dismiss somebody with this role in this place."""
        places = _places(
            one for one in self.memberships if role in APPOINTS.get(one.role, ())
        )
        if school is not None:
            return places.has_school(school)
        if district is not None:
            return places.has_district(district.pk)
        return places.state


def _inside(places: Places) -> Q:
    return Q(district_id__in=places.districts) | Q(pk__in=places.schools)


def _places(memberships: Iterable[Membership]) -> Places:
    state, districts, schools = False, set(), set()
    for one in memberships:
        if one.school_id is not None:
            schools.add(one.school_id)
        elif one.district_id is not None:
            districts.add(one.district_id)
        else:
            state = True
    return Places(state, frozenset(districts), frozenset(schools))
