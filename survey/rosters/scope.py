"""Where a roster may put people: the uploader's places, and the window's."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from accounts.permissions import Capability, Permissions, Places
from survey.models import Administration, RosterUpload

# The same words whether there is such a school or not: what lies elsewhere is
# nobody's business.
NOT_YOURS = "is not a school that you upload rosters for"
NOT_OFFERED = "is not a school in which this administration is offered"
ELSEWHERE = (
    "is on the roster of another school. The district can move this person, or"
    " that school's next roster lets go of them"
)


@dataclass(frozen=True, slots=True)
class Offer:
    """To whom an administration is offered."""

    owner: int | None = None
    districts: AbstractSet[int] = frozenset()
    schools: AbstractSet[int] = frozenset()

    def has(self, district: int | None, school: int | None) -> bool:
        if self.districts or self.schools:
            return district in self.districts or school in self.schools
        return self.owner is None or district == self.owner


@dataclass(frozen=True, slots=True)
class Reach:
    """An engineer's command reaches everything: `Reach()`."""

    places: Places = field(default_factory=lambda: Places(state=True))
    offer: Offer = field(default_factory=Offer)

    def refusal(self, district: int | None, school: int | None) -> str:
        """Why nobody can be put there; None is what does not exist yet.

        Who has the state may create both, who has a district its schools.
        """
        places = self.places
        if not (
            places.state or district in places.districts or school in places.schools
        ):
            return NOT_YOURS
        return "" if self.offer.has(district, school) else NOT_OFFERED

    def has(self, district: int, school: int) -> bool:
        return not self.refusal(district, school)


def reach_of(upload: RosterUpload, permissions: Permissions) -> Reach | None:
    """The upload's place, if it is still one of the person's; or None."""
    places = permissions.places(Capability.MANAGE_ROSTERS)
    if upload.school is not None:
        allowed = places.has_school(upload.school)
        own = Places(schools=frozenset((upload.school.pk,)))
    elif upload.district_id is not None:
        allowed = places.has_district(upload.district_id)
        own = Places(districts=frozenset((upload.district_id,)))
    else:
        allowed, own = places.state, Places(state=True)
    return Reach(own, offer_of(upload.administration)) if allowed else None


def offer_of(administration: Administration) -> Offer:
    """2 statements."""
    return Offer(
        administration.district_id,
        frozenset(administration.districts.values_list("pk", flat=True)),
        frozenset(administration.schools.values_list("pk", flat=True)),
    )
