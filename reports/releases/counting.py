"""Count the answers of each group at each place, in memory.

An item's codes become numbers of columns, and `numpy.bincount` counts the columns of
each school and value at once. Districts and the state are sums of schools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.answers.item_codes import (
    ANSWERED,
    NOT_APPLICABLE,
    SKIPPED,
    VALUE,
    ItemCodes,
)
from reports.answers.people import Group, Ints, People
from reports.releases.layout import (
    STATES,
    Column,
    CountedItem,
    DistinctNumbers,
    Layout,
    binned,
    number_of,
)

Counts = NDArray[np.int32]
STATE_CODES = {
    "skipped": SKIPPED,
    "not applicable": NOT_APPLICABLE,
    "answered": ANSWERED,
}
GRADE = "grade"


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """The figures of one group at one place; see `Layout.columns` for `counts`."""

    people: int
    finished: int
    counts: Counts

    def __add__(self, addend: GroupCounts) -> GroupCounts:
        longest = max(len(self.counts), len(addend.counts))
        return GroupCounts(
            self.people + addend.people,
            self.finished + addend.finished,
            lengthened(self.counts, longest) + lengthened(addend.counts, longest),
        )


# Attribute and value; both are "" for everyone.
GroupKey = tuple[str, str]
SchoolCounts = Mapping[tuple[int, GroupKey], GroupCounts]


def lengthened(counts: Counts, length: int) -> Counts:
    missing = length - len(counts)
    return np.pad(counts, (0, missing)) if missing else counts


def packed(counts: Counts) -> bytes:
    """Return the bytes to store: the size of a number, then all of them.

    Most groups have fewer than 256 people, and so a byte for each number.
    """
    size = next(size for size in (1, 2, 4) if counts.max(initial=0) < 256**size)
    return bytes((size,)) + counts.astype(f"<u{size}").tobytes()


def unpacked(stored: bytes | memoryview) -> Counts:
    numbers = bytes(stored)
    return np.frombuffer(numbers, dtype=f"<u{numbers[0]}", offset=1).astype(np.int32)


def who_answered(answers: Mapping[str, ItemCodes], people: People) -> NDArray[np.bool_]:
    """Return who has answered any of these items."""
    have_answered = np.zeros(len(people), dtype=np.bool_)
    for item in answers.values():
        have_answered |= item.codes >= ANSWERED
    return have_answered


def distinct_numbers(
    items: Sequence[CountedItem], answers: Mapping[str, ItemCodes], people: People
) -> dict[int, dict[str, DistinctNumbers]]:
    """Return the different numbers of each school, by item."""
    schools, of_person = np.unique(people.schools, return_inverse=True)
    numbers_of: dict[int, dict[str, DistinctNumbers]] = {
        key: {} for key in schools.tolist()
    }
    for item in items:
        if item.measured != "number":
            continue
        codes, texts = answers[item.name].codes, answers[item.name].values
        size = VALUE + len(texts)
        pairs = np.unique(of_person * size + codes)
        starts = np.searchsorted(pairs, np.arange(len(schools) + 1) * size)
        numbers = [number_of(text) for text in texts]
        for school, first, last in zip(
            schools.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True
        ):
            of_school = pairs[first:last] % size
            values = {
                numbers[code - VALUE] for code in of_school.tolist() if code >= VALUE
            }
            numbers_of[school][item.name] = DistinctNumbers.of(values - {""})
    return numbers_of


def count_groups(
    layout: Layout,
    answers: Mapping[str, ItemCodes],
    people: People,
    attributes: Sequence[str],
) -> Iterator[tuple[int, GroupKey, GroupCounts]]:
    """Yield school, group and figures of all groups that have people."""
    schools, of_person = np.unique(people.schools, return_inverse=True)
    columns = [_ColumnsOf(item, layout, answers[item.name]) for item in layout.items]
    for attribute in attributes:
        of_groups = [value_of(attribute, group) for group in people.groups]
        distinct, of_group = np.unique(
            np.array(of_groups, dtype=object), return_inverse=True
        )
        values: list[str] = distinct.tolist()
        keys = of_person * len(values) + of_group[people.group]
        size = len(schools) * len(values)
        number = np.bincount(keys, minlength=size)
        finished = np.bincount(keys[people.finished], minlength=size)
        counts = np.zeros((size, len(layout.columns)), dtype=np.int32)
        for item in columns:
            item.count(keys, counts)
        for place in np.flatnonzero(number).tolist():
            school, value = divmod(place, len(values))
            yield (
                int(schools[school]),
                (attribute, values[value]),
                GroupCounts(int(number[place]), int(finished[place]), counts[place]),
            )


def value_of(attribute: str, group: Group) -> str:
    if attribute == GRADE:
        return group.grade
    # Everyone has no attribute, and so the value "".
    return str(group.attributes.get(attribute, ""))


class _ColumnsOf:
    """The columns of one item, and which of them its codes count in."""

    def __init__(self, item: CountedItem, layout: Layout, answers: ItemCodes) -> None:
        self.answers = answers
        place = {column: number for number, column in enumerate(layout.columns)}
        self.states = [place[Column(item.name, kind)] for kind in STATES]
        # Place of a column -> whether each code counts in it.
        self.chosen: list[tuple[int, NDArray[np.bool_]]] = []
        # For each code: the place of its column, or the number of columns for none.
        self.column_of = np.full(VALUE + len(answers.values), len(place))
        for number, text in enumerate(answers.values, start=VALUE):
            if item.measured == "choice":
                column = Column(item.name, "value", text)
                self.column_of[number] = place.get(column, len(place))
            elif item.measured == "number" and (exact := number_of(text)):
                value = binned(exact, layout.widths[item.name])
                # None if only people who do not count gave this answer.
                column = Column(item.name, "value", value)
                self.column_of[number] = place.get(column, len(place))
        if item.measured == "multiple":
            sets = [set(text.split(" ")) for text in answers.values]
            for option in item.options:
                has = [False] * VALUE + [option in chosen for chosen in sets]
                column = Column(item.name, "value", option)
                self.chosen.append((place[column], np.array(has)))
        self.multiple = item.measured == "multiple"

    def count(self, keys: Ints, counts: Counts) -> None:
        """Add the people of each key to their columns."""
        codes, size = self.answers.codes, len(counts)
        columns = np.unique(self.column_of)
        columns = columns[columns < counts.shape[1]]
        # States, no column at all, and then the columns of values.
        local = np.full(len(self.column_of), ANSWERED)
        local[:VALUE] = range(VALUE)
        for number, column in enumerate(columns.tolist(), start=VALUE):
            local[self.column_of == column] = number
        width = VALUE + len(columns)
        cells = keys * width
        # Looking up two million codes takes as long as counting them.
        cells += codes if (local == np.arange(len(local))).all() else local[codes]
        people = np.bincount(cells, minlength=size * width).reshape(size, width)
        skipped, not_applicable, answered = self.states
        counts[:, skipped] = people[:, SKIPPED]
        counts[:, not_applicable] = people[:, NOT_APPLICABLE]
        counts[:, answered] = people[:, ANSWERED:].sum(axis=1)
        counts[:, columns] = people[:, VALUE:]
        for column, has in self.chosen:
            counts[:, column] = np.bincount(keys[has[codes]], minlength=size)
