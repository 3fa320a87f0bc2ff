"""Read figures of places, for readers who may not see every school in them.

People who may see all responses of a district or of the state read its figures as
they are. Everybody else reads those of its schools with a report together, as on
public pages: in the figures of all schools, minus the own and the published ones, are
only those without a report, and perhaps a single one. Nor is anything shown to them by
grade or subgroup: the grades of a district leave out schools that hide one of theirs,
so the answers of these are all minus the sum of the grades.

Results can be shared without being published. So at least two of the schools that are
added up are not those of the reader, also in the state without the districts that the
same reader sees.
"""

from __future__ import annotations

from collections.abc import Collection

from accounts.permissions import Capability, Permissions
from reports.releases.levels import LEVELS, STATE, Place
from reports.results.sums import sums_of_reports
from reports.results.visible import VisibleGroup, visible_groups
from reports.suppression.tables import Integers
from survey.models import Administration


def figures_for(
    permissions: Permissions,
    administration: Administration,
    places: Collection[Place],
    attribute: str = "",
    value: str = "",
) -> dict[Place, VisibleGroup | None]:
    """Return a group's distributions as `visible_groups` does, as the user may see it.

    The caller decides which schools and wholes these are. 1 statement, and 2 more to
    add up schools, unless the sums are in the cache.
    """
    seen = permissions.places(Capability.SEE_RESPONSES)
    added_up = {
        (level, key)
        for level, key in places
        if not seen.state
        and level != LEVELS.SCHOOL.value
        and not (level == LEVELS.DISTRICT.value and key in seen.districts)
    }
    as_they_are = [place for place in places if place not in added_up]
    figures = visible_groups(administration, as_they_are, attribute, value)
    if figures and added_up and not attribute:
        figures |= _sums_of_schools(permissions, administration, added_up)
    return figures


def _sums_of_schools(
    permissions: Permissions, administration: Administration, places: Collection[Place]
) -> dict[Place, VisibleGroup | None]:
    """Return sums of schools with a report, where nobody else's school is alone."""
    seen = permissions.places(Capability.SEE_RESPONSES)
    own_schools = seen.schools | permissions.places(Capability.SEE_RESULTS).schools
    asked = {key for level, key in places if level == LEVELS.DISTRICT.value}
    district_of, sums = sums_of_reports(
        administration, own_schools, seen.districts | asked
    )
    known = set(district_of.values())
    # Of all own schools, since the state minus these must not be a single school.
    around = {district_of[school] for school in own_schools if school in district_of}
    # For each item, and for the whole place: schools that the reader does not see.
    unseen: dict[Place, Integers] = {STATE: sums[STATE].schools}
    for key in known & seen.districts:
        unseen[STATE] = unseen[STATE] - sums[LEVELS.DISTRICT.value, key].schools
    for key in (around | known & asked) - seen.districts:
        place = (LEVELS.DISTRICT.value, key)
        shown = sums[place].shown
        of_own_schools = sum(shown[school] for school in own_schools if school in shown)
        unseen[place] = sums[place].schools - of_own_schools
        unseen[STATE] = unseen[STATE] - of_own_schools
    # For each of these, whether it is not the figures of a single school.
    is_shown = {place: (rest != 1) & (rest[-1] > 1) for place, rest in unseen.items()}
    rest = unseen[STATE] - sum(
        unseen[place] * is_shown[place] for place in unseen.keys() - {STATE}
    )
    is_shown[STATE] &= (rest != 1) & (rest[-1] != 1)
    return {
        place: sums[place].group(administration, is_shown[place])
        for place in places
        if place in is_shown and is_shown[place][-1]
    }
