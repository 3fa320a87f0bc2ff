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

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from django.db.models import F

from accounts.permissions import Capability, Permissions
from reports.models import GroupResults
from reports.results.counting import lengthened, unpacked
from reports.results.layout import Layout
from reports.results.reading import LEVELS, items_of
from reports.results.visible import Place, VisibleGroup, visible_groups
from reports.suppression.tables import Integers, Mask
from reports.visible_rates import schools_with_reports
from survey.models import Administration

STATE: Place = (LEVELS.STATE.value, 0)


def figures_for(
    permissions: Permissions,
    administration: Administration,
    places: Collection[Place],
    attribute: str = "",
    value: str = "",
) -> dict[Place, VisibleGroup | None]:
    """Return a group's distributions as `visible_groups` does, as the user may see it.

    The caller decides which schools and wholes these are. 1 statement, and 2 more for
    wholes that the user does not see completely.
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
    found = visible_groups(administration, as_they_are, attribute, value)
    if found and added_up and not attribute:
        found |= _sums_of_schools(permissions, administration, added_up)
    return found


@dataclass
class _Sum:
    """The figures of schools. In `unseen` are those that the reader does not see.

    `people` and `unseen` have a number for each item, and one for the whole place.
    """

    people: Integers
    unseen: Integers
    counts: Integers
    finished: int = 0

    @property
    def is_shown(self) -> Mask:
        """Tell for each item whether it is not the figures of a single school."""
        return (self.unseen != 1) & (self.unseen[-1] > 1)


def _sums_of_schools(
    permissions: Permissions, administration: Administration, places: Collection[Place]
) -> dict[Place, VisibleGroup | None]:
    """Add up schools with a report. 2 statements."""
    seen = permissions.places(Capability.SEE_RESPONSES)
    own_schools = seen.schools | permissions.places(Capability.SEE_RESULTS).schools
    rates = schools_with_reports(administration)
    if STATE not in places:
        rates = rates.filter(district__in=[key for _level, key in places])
    districts = dict(rates.values_list("school_id", "district_id"))
    # Of all own schools, since the state minus these must not be a single school.
    around = {districts[school] for school in own_schools if school in districts}
    around |= {key for level, key in places if level == LEVELS.DISTRICT.value}
    layout = Layout.from_json(administration.results_roll_up.layout)
    of_item = _columns_by_item(layout)

    def empty() -> _Sum:
        size = len(layout.items) + 1
        return _Sum(
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros(len(layout.columns), np.int64),
        )

    sums = {STATE: empty()}
    sums |= {(LEVELS.DISTRICT.value, key): empty() for key in around - seen.districts}
    for school, people, finished, counts, shown in _schools(
        administration, layout, districts
    ):
        district = districts[school]
        is_unseen = school not in own_schools and district not in seen.districts
        for place in (STATE, (LEVELS.DISTRICT.value, district)):
            if total := sums.get(place):
                total.people += people * shown
                total.unseen += is_unseen * shown
                total.counts += counts * shown[of_item]
                total.finished += finished
    is_shown = {place: total.is_shown for place, total in sums.items()}
    rest = sums[STATE].unseen.copy()
    for place in sums.keys() - {STATE}:
        rest -= sums[place].unseen * is_shown[place]
    is_shown[STATE] &= (rest != 1) & (rest[-1] != 1)
    return {
        place: _group(administration, layout, sums[place], is_shown[place])
        for place in places
        if place in sums and is_shown[place][-1]
    }


def _columns_by_item(layout: Layout) -> Integers:
    number_of = {item.name: number for number, item in enumerate(layout.items)}
    return np.array([number_of[column.item] for column in layout.columns], np.int64)


def _schools(
    administration: Administration, layout: Layout, chosen: Collection[int]
) -> Iterator[tuple[int, int, int, Integers, Integers]]:
    """Yield schools that are not hidden, and 1 for each item that a school shows.

    1 statement.
    """
    as_of = administration.results_roll_up.as_of
    rows = GroupResults.objects.filter(
        administration=administration,
        level=LEVELS.SCHOOL,
        attribute="",
        is_hidden=False,
        administration__results_roll_up__as_of=as_of,
        administration__results_roll_up__hidden_as_of=F(
            "administration__results_roll_up__as_of"
        ),
    )
    names = [item.name for item in layout.items]
    columns = "place_id", "people", "finished", "counts", "hidden_items"
    for school, people, finished, stored, hidden in rows.values_list(*columns):
        if school in chosen:
            # An item of which an option is hidden is left out as a whole.
            items = {name.partition(" ")[0] for name in hidden}
            shown = np.array([*(name not in items for name in names), True], np.int64)
            counts = lengthened(unpacked(stored), len(layout.columns))
            yield school, people, finished, counts, shown


def _group(
    administration: Administration, layout: Layout, total: _Sum, is_shown: Mask
) -> VisibleGroup:
    people = int(total.people[-1])
    figures = np.concatenate([total.counts, total.people[:-1]])
    items = items_of(layout, people, figures)
    is_shown = is_shown & (total.people > 0)
    hidden = [name for name, shown in zip(items, is_shown, strict=False) if not shown]
    return VisibleGroup(
        administration.results_roll_up.as_of,
        people,
        total.finished,
        {name: item for name, item in items.items() if name not in hidden},
        hidden,
        is_sum_of_reports=True,
    )
