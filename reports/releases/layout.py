"""The items of an administration's results, and the columns that count them.

Counts are stored as rows of numbers, without names: 480 numbers instead of as many
words in each of 40,000 rows. The layout, stored once, says what each number counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from reports.answers.versions import SurveyVersion
from survey.instrument.definitions.expressions.values import NUMBER, to_text
from survey.instrument.definitions.schema import NUMBERS

# More different numbers than these are counted in bins.
MOST_VALUES = 50

Measured = Literal["choice", "multiple", "number", "text"]
# A number of people: who have answered, skipped the item, or had not to answer it;
# or who have chosen a value.
Kind = Literal["answered", "skipped", "not applicable", "value"]
STATES: Sequence[Kind] = ("skipped", "not applicable", "answered")


class CountedItem(NamedTuple):
    """One item of the survey. Values of a "text" are not counted, dates included."""

    name: str
    measured: Measured
    options: tuple[str, ...] = ()


class Column(NamedTuple):
    """One number in a row of counts."""

    item: str
    kind: Kind
    # The option; of numbers the number itself, or the lower end of a bin.
    value: str = ""


@dataclass
class Layout:
    """What is counted, in the order of the columns.

    A recount of some schools appends columns for new numbers, so that the rows of
    the others stay as they are.
    """

    items: Sequence[CountedItem]
    # Item with numbers -> width of its bins; "" if each number is counted.
    widths: dict[str, str] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    # Those by which people are counted; "" is everyone.
    attributes: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        items: Sequence[CountedItem],
        attributes: Sequence[str],
        numbers: Mapping[str, DistinctNumbers],
    ) -> Layout:
        layout = cls(items, attributes=attributes)
        for item in items:
            layout.columns += (Column(item.name, kind) for kind in STATES)
            if item.measured != "number":
                values: Iterable[str] = item.options
            else:
                distinct = numbers[item.name]
                layout.widths[item.name] = distinct.width()
                values = distinct.counted()
            layout.columns += (Column(item.name, "value", each) for each in values)
        return layout

    def append(self, numbers: Mapping[str, DistinctNumbers]) -> None:
        """Add columns for numbers that have none; the widths of bins are the same."""
        known = set(self.columns)
        for name, distinct in numbers.items():
            wanted = [Column(name, "value", value) for value in distinct.counted()]
            self.columns += (column for column in wanted if column not in known)

    def as_json(self) -> dict[str, Any]:
        return {
            "items": self.items,
            "widths": self.widths,
            "columns": self.columns,
            "attributes": self.attributes,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Layout:
        return cls(
            [
                CountedItem(name, kind, tuple(options))
                for name, kind, options in stored["items"]
            ],
            dict(stored["widths"]),
            [Column(*column) for column in stored["columns"]],
            stored["attributes"],
        )


def counted_items(version: SurveyVersion) -> list[CountedItem]:
    """Return the items that are counted, page by page."""
    items = []
    for name in version.exported():
        item = version.items[name]
        kind = item["kind"]
        options = tuple(option["value"] for option in version.options(item))
        # Constants of the survey, which nobody answers.
        if kind == "hidden":
            continue
        measured: Measured = "text"
        if kind == "select_multiple":
            measured = "multiple"
        elif options:
            measured = "choice"
        elif kind in NUMBERS or kind == "calculate":
            measured = "number"
        items.append(CountedItem(name, measured, options))
    return items


def number_of(value: str) -> str:
    """Return a number as it is counted, so that 7.50 is 7.5, and "" for other text."""
    return to_text(float(value)) if NUMBER.fullmatch(value) else ""


def binned(value: str, width: str) -> str:
    """Return the lower end of the value's bin, or the value if there are no bins."""
    if not width:
        return value
    place = math.floor(Decimal(value) / Decimal(width))
    return format((place * Decimal(width)).normalize() + 0, "f")


@dataclass(frozen=True)
class DistinctNumbers:
    """The different numbers answered to an item; if there are too many, their ends."""

    values: frozenset[str] = frozenset()
    are_many: bool = False

    @classmethod
    def of(cls, values: Iterable[str], *, are_many: bool = False) -> DistinctNumbers:
        numbers = frozenset(values)
        if are_many or len(numbers) > MOST_VALUES:
            ends = frozenset((min(numbers, key=float), max(numbers, key=float)))
            return cls(ends, are_many=True)
        return cls(numbers)

    @classmethod
    def union(cls, parts: Iterable[DistinctNumbers]) -> DistinctNumbers:
        parts = list(parts)
        return cls.of(
            (value for part in parts for value in part.values),
            are_many=any(part.are_many for part in parts),
        )

    def width(self) -> str:
        """Return the width of bins: 1, 2 or 5 times a power of ten, or "" for none.

        It depends only on how many numbers there are, the lowest and the highest.
        All places have the same bins, so that they can be compared.
        """
        if not self.are_many:
            return ""
        low, high = self._ends()
        power = Decimal(10) ** math.floor(math.log10((high - low) / MOST_VALUES))
        widths = (format((power * factor).normalize(), "f") for factor in (1, 2, 5, 10))
        return next(
            (width for width in widths if len(_bins(low, high, width)) <= MOST_VALUES),
            # Both ends are in bins of their own, one more than fit between them.
            format((power * 20).normalize(), "f"),
        )

    def counted(self) -> list[str]:
        """Return the values that have a column: the numbers, or all bins."""
        if not self.are_many:
            return sorted(self.values, key=Decimal)
        width = self.width()
        return [
            format((number * Decimal(width)).normalize() + 0, "f")
            for number in _bins(*self._ends(), width)
        ]

    def _ends(self) -> tuple[Decimal, Decimal]:
        numbers = [Decimal(value) for value in self.values]
        return min(numbers), max(numbers)


def _bins(low: Decimal, high: Decimal, width: str) -> range:
    """Return the numbers of the bins from one value to another; bin 0 begins at 0."""
    first, last = (math.floor(end / Decimal(width)) for end in (low, high))
    return range(first, last + 1)
