"""Describe the columns of a file, and find out of which type their cells are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum

from reports.exports.cells import Cell, Date, Number
from reports.exports.release_mask import COARSENED

# Digits that every double tells apart.
EXACT_DIGITS = 15
# Distinct cells of a column that are remembered, so that each is looked at once, and
# the characters of the longest of them: other texts hardly ever repeat.
MOST_KNOWN, LONGEST_KNOWN = 5_000, 50


class Storage(Enum):
    NUMBER = "number"
    DAY = "date"
    TIME = "time of day"
    MOMENT = "date and time"
    TEXT = "text"


@dataclass(frozen=True)
class Described:
    """Describe a column by the survey, in the language of the export."""

    header: str
    label: str
    # What the survey says its answers are; None about the respondent.
    storage: Storage | None
    # Texts of the answers by code.
    values: Mapping[str, str] = field(default_factory=dict)
    # Reasons for cells without an answer, by code.
    missing: Mapping[int, str] = field(default_factory=dict)
    # The code among these of what is left out; CSV and Excel have "*".
    masked: int = 0
    # "nominal", "ordinal" or "scale".
    level: str = "nominal"
    # The multiple choice whose option this is.
    choice: str = ""
    # The question alone; of an option, without its text.
    question: str = ""


@dataclass(slots=True)
class Contents:
    """What the cells of a column are, but for codes of missing answers."""

    # As texts.
    codes: Collection[str]
    has_text: bool = False
    has_numbers: bool = False
    # Some number has more digits than a double tells apart.
    is_inexact: bool = False
    lowest: float = 0.0
    highest: float = 0.0
    decimals: int = 0
    shapes: set[Storage] = field(default_factory=set)
    # In bytes of UTF-8, of codes and masked cells as well.
    longest: int = 0
    _known: set[Cell] = field(default_factory=set)

    def add(self, cells: Iterable[Cell]) -> None:
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        for cell in set(cells) - self._known:
            if cell:
                self._add(cell)
            if cell is None or len(cell) <= LONGEST_KNOWN:
                self._known.add(cell)

    def _add(self, cell: str) -> None:
        # Nearly all characters take one byte, and no character more than four.
        if 4 * len(cell) > self.longest:
            self.longest = max(self.longest, len(cell.encode()))
        if cell == COARSENED:
            return
        if isinstance(cell, Number):
            if cell not in self.codes:
                self._add_number(cell)
        elif isinstance(cell, Date):
            self._add_date(cell)
        else:
            self.has_text = True

    def _add_number(self, cell: Number) -> None:
        number = float(cell)
        if sum(map(str.isdigit, cell)) > EXACT_DIGITS:
            self.is_inexact |= Decimal(repr(number)) != Decimal(cell)
        self.has_numbers = True
        self.lowest, self.highest = min(self.lowest, number), max(self.highest, number)
        _, _, fraction = cell.partition(".")
        self.decimals = max(self.decimals, len(fraction))

    def _add_date(self, cell: Date) -> None:
        if "-" not in cell:
            self.shapes.add(Storage.TIME)
        else:
            self.shapes.add(Storage.MOMENT if ":" in cell else Storage.DAY)

    def storage(self, declared: Storage | None) -> Storage:
        """Return the type that holds all of the cells as they are.

        `declared` decides where no cell does, and only if it is a text otherwise.
        """
        if declared is Storage.TEXT or self.has_text or self.is_inexact:
            return Storage.TEXT
        if len(self.shapes) + self.has_numbers > 1:
            return Storage.TEXT
        if self.has_numbers:
            return Storage.NUMBER
        if self.shapes:
            (shape,) = self.shapes
            return shape
        return declared or Storage.TEXT


@dataclass(frozen=True)
class Column:
    """A column as it is written, under a name that its program allows."""

    name: str
    about: Described
    storage: Storage
    contents: Contents

    @property
    def is_text(self) -> bool:
        return self.storage is Storage.TEXT

    @property
    def is_whole(self) -> bool:
        return self.storage is Storage.NUMBER and self.contents.decimals == 0


def seconds_of(cell: str, storage: Storage, zero: date) -> int:
    """Return a date or moment as seconds since the day `zero`, a time since midnight.

    Years before 1582 are of the Gregorian calendar as well.
    """
    if storage is Storage.TIME:
        return _seconds(time.fromisoformat(cell))
    moment = datetime.fromisoformat(cell)
    days = (moment.date() - zero).days
    return 86_400 * days + _seconds(moment.time())


def _seconds(moment: time) -> int:
    return 3600 * moment.hour + 60 * moment.minute + moment.second
