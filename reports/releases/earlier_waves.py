"""Read what was hidden before of the same people: in an earlier wave or count."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from django.utils import timezone

from reports.models import GroupResults, ResultsRollUp
from reports.releases.counting import GroupKey
from reports.releases.levels import LEVELS
from reports.releases.result_arrays import ResultArrays
from reports.suppression.tables import (
    EarlierSuppression,
    GroupCounts,
    HiddenCells,
    Integers,
    Mask,
)
from survey.fieldwork.us_holidays import school_year
from survey.models import Administration

# In place of the position of a school that is among the places no longer.
GONE = -1


def earlier_suppression(
    administration: Administration, arrays: ResultArrays, groups: GroupCounts
) -> EarlierSuppression:
    """Return what was hidden of the same people before.

    That is in these results, if they were decided since the closing, because somebody
    may have seen them. What the wave before has hidden stays hidden in groups of about
    as many people, unless it has been shown already. 4 statements.
    """
    nothing = EarlierSuppression.none(groups)
    roll_up = ResultsRollUp.objects.filter(
        administration=administration, hidden_as_of__gte=administration.closes_at
    ).first()
    seen = roll_up and _stored_cells(roll_up, arrays, groups)
    before = wave_before(administration)
    if before is None:
        return seen.suppression(nothing.forced) if seen else nothing
    earlier = _stored_cells(before, arrays, groups)
    difference = np.abs(arrays.people - earlier.people)
    are_same = (earlier.people > 0) & (difference < administration.minimum_group)
    preferred = seen or earlier
    return preferred.suppression(
        preferred.hidden.intersection(earlier.hidden, are_same)
    )


def wave_before(administration: Administration) -> ResultsRollUp | None:
    """Return the results of the last earlier administration to the same people.

    Of the same survey, owner and role, as in trends. In another school year, grades
    have other people, and schools many. 1 statement.
    """
    survey = administration.published.survey
    earlier = (
        ResultsRollUp.objects.filter(
            administration__role=administration.role,
            administration__district=administration.district_id,
            administration__published__survey__name=survey.name,
            administration__published__survey__district=survey.district_id,
            administration__closes_at__lt=administration.closes_at,
            hidden_as_of__isnull=False,
        )
        .select_related("administration")
        .order_by("-administration__closes_at", "-pk")
        .first()
    )
    if earlier is None:
        return None
    years = {
        school_year(timezone.localdate(wave.closes_at))
        for wave in (administration, earlier.administration)
    }
    return earlier if len(years) == 1 else None


@dataclass(frozen=True)
class StoredCells:
    """Earlier decisions, as stored, in the order of today's places and groups."""

    people: Integers
    hidden: HiddenCells
    undivided: Mask
    divided: Mask
    summed: Mapping[tuple[int, int], frozenset[int]]

    def suppression(self, forced: HiddenCells) -> EarlierSuppression:
        return EarlierSuppression(
            self.hidden, forced, self.undivided, self.divided, self.summed
        )


def _stored_cells(
    roll_up: ResultsRollUp, arrays: ResultArrays, groups: GroupCounts
) -> StoredCells:
    """Read what is hidden, and how many people had answered. 1 statement."""
    place_of = {place: number for number, place in enumerate(arrays.places)}
    column_of = {group: number for number, group in enumerate(arrays.groups)}
    hidden = np.zeros(arrays.people.shape, dtype=bool)
    people = np.zeros_like(arrays.people)
    partly: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    stored_groups: set[GroupKey] = set()
    rows = GroupResults.objects.filter(administration=roll_up.pk)
    names = ("level", "place_id", "attribute", "value")
    for level, key, attribute, value, number, is_hidden, items in rows.values_list(
        *names, "people", "is_hidden", "hidden_items"
    ):
        stored_groups.add((attribute, value))
        place = place_of.get((level, key))
        column = column_of.get((attribute, value))
        if place is None or column is None:
            continue
        people[place, column], hidden[place, column] = number, is_hidden
        for name in items:
            partly[name].append((place, column))
    # A group that had everybody was not shown, but known.
    values = Counter(attribute for attribute, _ in stored_groups)
    hidden &= [not group[0] or values[group[0]] > 1 for group in arrays.groups]
    # A larger place hides all groups of an attribute or none; others are stored as
    # hidden because all of their people are left out.
    is_larger = np.array([level != LEVELS.SCHOOL for level, _ in arrays.places])
    for attribute in map(np.array, groups.attributes):
        is_shown = (~hidden & (people > 0))[:, attribute].any(axis=1)
        hidden[np.ix_(is_larger & is_shown, attribute)] = False
    of_items = {name: hidden.copy() for name in partly}
    for name, cells in partly.items():
        of_items[name][tuple(np.array(cells).T)] = True
    attributes = [arrays.groups[columns[0]][0] for columns in groups.attributes]
    undivided = np.zeros((len(arrays.places), len(attributes)), dtype=bool)
    known = np.zeros_like(undivided)
    if roll_up.undivided is not None:
        for level, key, attribute in roll_up.undivided:
            if (level, key) in place_of and attribute in attributes:
                place = place_of[level, key]
                undivided[place, attributes.index(attribute)] = True
        for number, columns in enumerate(groups.attributes):
            if values[attributes[number]] > 1:
                known[:, number] = people[:, list(columns)].any(axis=1)
        known &= ~hidden[:, [0]]
    summed = {
        (place_of[level, key], attributes.index(attribute)): frozenset(
            place_of.get((LEVELS.SCHOOL.value, school), GONE) for school in schools
        )
        for level, key, attribute, schools in roll_up.summed or ()
        if (level, key) in place_of and attribute in attributes
    }
    divided = known & ~undivided
    return StoredCells(
        people, HiddenCells(hidden, of_items), undivided, divided, summed
    )
