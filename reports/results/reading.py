"""Read stored distributions: of one group for a page, or of all groups as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from reports.models import GroupResults, ResultsRollUp
from reports.results.counting import Counts, GroupKey, lengthened, unpacked
from reports.results.layout import Layout, Measured
from reports.suppression.end_coding import CodedShare, coded_shares
from survey.models import Administration

LEVELS = GroupResults.Level


@dataclass(slots=True)
class ItemDistribution:
    """How many people of a group gave each answer to an item."""

    measured: Measured
    answered: int = 0
    skipped: int = 0
    not_applicable: int = 0
    not_reached: int = 0
    # Option, number or lower end of a bin -> people, in the survey's or numeric order.
    # Of multiple choices, a person may be in several.
    values: dict[str, int] = field(default_factory=dict)
    # Of bins; "" if each number is counted.
    width: str = ""
    # Answers that are not in `values`, because only a bound of their share is shown.
    coded: dict[str, CodedShare] = field(default_factory=dict)
    # Who gave one of these, where answers exclude each other: all minus the exact ones.
    coded_people: int = 0

    @property
    def answers(self) -> set[str]:
        return self.values.keys() | self.coded.keys()

    def code_ends(self, threshold: int) -> bool:
        """Replace the numbers of all and hardly any people by bounds of their shares.

        Return False if the item has to be hidden instead.
        """
        are_exclusive = self.measured != "multiple"
        shares = coded_shares(
            list(self.values.values()),
            self.answered,
            threshold,
            are_exclusive=are_exclusive,
        )
        if shares is None:
            return False
        for value, share in zip(list(self.values), shares, strict=True):
            if share:
                people = self.values.pop(value)
                self.coded[value] = share
                self.coded_people += people if are_exclusive else 0
        return True


@dataclass(frozen=True, slots=True)
class GroupDistribution:
    """The answers of one group at one place. Nothing is hidden in it."""

    as_of: datetime
    # Who have answered at least one item, and who of them have finished.
    people: int
    finished: int
    # By the item's name, in the order of the survey.
    items: Mapping[str, ItemDistribution]


def distributions(
    administration: Administration,
    level: str = LEVELS.STATE,
    place: int = 0,
    attribute: str = "",
    value: str = "",
) -> GroupDistribution | None:
    """Return a group's distributions, or None if nobody in it has answered.

    Of everyone at the place unless an attribute is given. 1 statement.
    """
    row = (
        GroupResults.objects.filter(
            administration=administration,
            level=level,
            place_id=place,
            attribute=attribute,
            value=value,
        )
        .values_list(
            "people",
            "finished",
            "counts",
            "administration__results_roll_up__layout",
            "administration__results_roll_up__as_of",
        )
        .first()
    )
    if row is None:
        return None
    people, finished, stored, layout, as_of = row
    items = items_of(Layout.from_json(layout), people, unpacked(stored))
    return GroupDistribution(as_of, people, finished, items)


def items_of(
    layout: Layout, people: int, counts: Counts
) -> dict[str, ItemDistribution]:
    """Return the distributions in a row of counts.

    After these there may be the number of people for each item, where some are left
    out.
    """
    items = {
        item.name: ItemDistribution(
            item.measured, width=layout.widths.get(item.name, "")
        )
        for item in layout.items
    }
    columns = counts[: len(layout.columns)]
    numbers = lengthened(columns, len(layout.columns)).tolist()
    for column, number in zip(layout.columns, numbers, strict=True):
        item = items[column.item]
        if column.kind == "answered":
            item.answered = number
        elif column.kind == "skipped":
            item.skipped = number
        elif column.kind == "not applicable":
            item.not_applicable = number
        else:
            item.values[column.value] = number
    bases = counts[len(layout.columns) :].tolist() or [people] * len(items)
    for base, item in zip(bases, items.values(), strict=True):
        item.not_reached = base - item.answered - item.skipped - item.not_applicable
        if item.measured == "number":
            item.values = {
                value: item.values[value] for value in sorted(item.values, key=float)
            }
    return items


@dataclass(frozen=True)
class ResultArrays:
    """All figures of an administration.

    Places are numbered from the state, before districts, before schools: so each
    comes after its parent. Figures of groups without people are 0.
    """

    as_of: datetime
    layout: Layout
    # Level and key.
    places: Sequence[tuple[str, int]]
    # Place -> number of the place around it; -1 for the state.
    parents: Sequence[int]
    groups: Sequence[GroupKey]
    # [place, group]
    people: Counts
    finished: Counts
    # [place, group, column of the layout]
    counts: Counts

    def of_groups(self, groups: Sequence[GroupKey]) -> ResultArrays:
        order = [self.groups.index(group) for group in groups]
        return replace(
            self,
            groups=groups,
            people=self.people[:, order],
            finished=self.finished[:, order],
            counts=self.counts[:, order],
        )

    def columns_of(self, item: str) -> list[int]:
        return [
            number
            for number, column in enumerate(self.layout.columns)
            if column.item == item
        ]


def result_arrays(
    administration: Administration, districts: Mapping[int, int]
) -> ResultArrays | None:
    """Return all figures, or None before the first roll-up. 2 statements.

    `districts` are those of schools. 4,000 schools, 20 groups and 500 columns take
    170 MB.
    """
    roll_up = ResultsRollUp.objects.filter(pk=administration.pk).first()
    if roll_up is None:
        return None
    layout = Layout.from_json(roll_up.layout)
    rows = GroupResults.objects.filter(administration=administration)
    names = ("level", "place_id", "attribute", "value", "people", "finished", "counts")
    records = list(rows.values_list(*names))
    order = [str(LEVELS.STATE), str(LEVELS.DISTRICT), str(LEVELS.SCHOOL)]
    places = sorted(
        {(level, place) for level, place, *_ in records},
        key=lambda place: (order.index(place[0]), place[1]),
    )
    groups = sorted({(attribute, value) for _, _, attribute, value, *_ in records})
    number_of = {place: number for number, place in enumerate(places)}
    group_of = {group: number for number, group in enumerate(groups)}
    shape = (len(places), len(groups))
    people, finished = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    counts = np.zeros((*shape, len(layout.columns)), np.int32)
    for level, place, attribute, value, *figures, stored in records:
        cell = number_of[level, place], group_of[attribute, value]
        people[cell], finished[cell] = figures
        numbers = unpacked(stored)
        counts[cell][: len(numbers)] = numbers
    parents = [
        -1
        if level == LEVELS.STATE
        else 0
        if level == LEVELS.DISTRICT
        else number_of[str(LEVELS.DISTRICT), districts[place]]
        for level, place in places
    ]
    return ResultArrays(
        roll_up.as_of, layout, places, parents, groups, people, finished, counts
    )
