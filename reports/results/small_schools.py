"""Show the small schools of a district together, if its figures have them.

A hidden school is a part of its district's figures only together with others. These
figures are the district's minus those of the schools that are shown, and are calculated
from nothing else: everybody who sees all of these can subtract them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from reports.models import CountedSchool, GroupResults
from reports.releases.levels import LEVELS
from reports.results.distributions import ItemDistribution
from reports.results.visible import VisibleGroup, code_ends, visible_groups
from survey.models import Administration

FEWEST_SCHOOLS = 2


@dataclass(frozen=True, slots=True)
class SmallSchools:
    """The hidden schools of a district, with the figures of everyone in them."""

    number: int
    group: VisibleGroup

    @property
    def name(self) -> str:
        words = _("Smaller schools of the district (%(number)s schools)")
        return words % {"number": self.number}


def small_schools(
    administration: Administration, district: int, whole: VisibleGroup
) -> SmallSchools | None:
    """Return the small schools of a district; None if its figures leave them out.

    `whole` are the district's figures, of everyone, for a user who sees all of its
    schools. 1 statement, and 2 more if there are some.
    """
    if whole.leaves_out_schools:
        return None
    counted = CountedSchool.objects.filter(
        administration=administration, district_id=district
    ).values_list("school_id", flat=True)
    hidden = GroupResults.objects.filter(
        administration=administration,
        level=LEVELS.SCHOOL,
        place_id__in=counted,
        attribute="",
        is_hidden=True,
    )
    if hidden.count() < FEWEST_SCHOOLS:
        return None
    schools = visible_groups(
        administration, [(LEVELS.SCHOOL.value, key) for key in counted]
    )
    shown = [group for group in schools.values() if group]
    number = len(schools) - len(shown)
    people = whole.people - sum(group.people for group in shown)
    # Without a shown school, they are the district.
    if not shown or number < FEWEST_SCHOOLS or people < administration.minimum_group:
        return None
    items = {}
    for name, item in whole.items.items():
        # A school that hides the item is together with the small schools: the figures
        # would be those of other schools as well. With coded answers, the difference
        # would tell what they stand for.
        if item.coded or any(hides(group, name) for group in shown):
            continue
        rest = subtracted(item, [group.items[name] for group in shown])
        is_of_all = people == (
            rest.answered + rest.skipped + rest.not_applicable + rest.not_reached
        )
        if is_of_all and rest.answered >= administration.minimum_group:
            items[name] = rest
    code_ends(items, administration.results_roll_up.coding_threshold)
    group = VisibleGroup(
        whole.as_of,
        people,
        whole.finished - sum(group.finished for group in shown),
        items,
        [name for name in [*whole.items, *whole.hidden_items] if name not in items],
        whole.hidden_options,
    )
    return SmallSchools(number, group)


def hides(group: VisibleGroup, item: str) -> bool:
    """Return whether a number of an answer to the item is not shown exactly."""
    if item not in group.items or item in group.hidden_options:
        return True
    return bool(group.items[item].coded)


def subtracted(
    whole: ItemDistribution, parts: Sequence[ItemDistribution]
) -> ItemDistribution:
    return ItemDistribution(
        whole.measured,
        whole.answered - sum(part.answered for part in parts),
        whole.skipped - sum(part.skipped for part in parts),
        whole.not_applicable - sum(part.not_applicable for part in parts),
        whole.not_reached - sum(part.not_reached for part in parts),
        {
            value: people - sum(part.values.get(value, 0) for part in parts)
            for value, people in whole.values.items()
        },
        whole.width,
    )
