"""What a roster would change, or did, and which rows it refused."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TextIO

from accounts.csv_injection import escape_formula
from survey.rosters.columns import REASON_HEADER, Columns
from survey.rosters.people import Rejection
from survey.spreadsheets.xlsx_rows import SheetRow

# Kept for the screen; all of them go to the file.
MOST_REJECTIONS_KEPT = 1000
BATCH = 5000


class Rejections:
    """Keeps the first ones, and hands all on in batches: they may be millions."""

    def __init__(self, keep: Callable[[list[Rejection]], None]) -> None:
        self.rows = 0
        self.first: list[Rejection] = []
        self._keep = keep
        self._waiting: list[Rejection] = []

    def add(self, of_one_row: Sequence[Rejection]) -> None:
        self.rows += 1
        room = MOST_REJECTIONS_KEPT - len(self.first)
        self.first.extend(of_one_row[: max(room, 0)])
        self._waiting.extend(of_one_row)
        if len(self._waiting) >= BATCH:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self._keep(self._waiting)
            self._waiting = []


def write_rejected(
    file: TextIO,
    columns: Columns,
    rows: Iterator[SheetRow],
    rejections: Iterator[Rejection],
) -> int:
    """The refused rows as they were, with the reason first; how many.

    To be corrected and uploaded as it is. `rejections` come in the order of
    their rows.
    """
    writer = csv.writer(file)
    header = [(index, text) for index, text in enumerate(columns.header)]
    kept = [index for index, text in header if not _is_reason(text)]
    writer.writerow([REASON_HEADER, *(escape_formula(columns.header[i]) for i in kept)])
    written = 0
    for number, of_row in groupby(rejections, key=lambda one: one.row):
        cells = next((cells for row, cells in rows if row == number), None)
        if cells is None:
            break
        width = len(columns.header)
        reason = f"Row {number}: " + "; ".join(_said(one) for one in of_row)
        shown = [*(cells[index] for index in kept), *cells[width:]]
        writer.writerow([escape_formula(reason), *map(escape_formula, shown)])
        written += 1
    return written


def _is_reason(header: str) -> bool:
    return header.casefold() == REASON_HEADER.casefold()


def _said(one: Rejection) -> str:
    return f"{one.column} {one.reason}".strip()


@dataclass
class SchoolCounts:
    """`school_id` is negative where the school is still to be created."""

    school_id: int
    name: str
    district_id: int
    district_name: str
    # Who could log in before.
    people: int = 0
    added: int = 0
    changed: int = 0
    moved: int = 0
    moved_away: int = 0
    back: int = 0
    unchanged: int = 0
    withdrawn: int = 0


@dataclass
class RosterReport:
    """`imported` is False where rows were rejected and nothing was imported."""

    columns: Columns
    description: str
    rows: int = 0
    imported: bool = False
    rejected: int = 0
    # The first ones only.
    rejections: list[Rejection] = field(default_factory=list)
    # Note -> how many cells.
    notes: dict[str, int] = field(default_factory=dict)
    districts_created: list[str] = field(default_factory=list)
    schools_created: list[str] = field(default_factory=list)
    schools: list[SchoolCounts] = field(default_factory=list)
    # Rejected rows that do not say whose they are: nobody is withdrawn then.
    nameless: int = 0

    def _sum(self, name: str) -> int:
        return sum(getattr(one, name) for one in self.schools)

    @property
    def added(self) -> int:
        return self._sum("added")

    @property
    def changed(self) -> int:
        """In whatever way: moved and come back, too."""
        return self._sum("changed") + self.moved + self.back

    @property
    def moved(self) -> int:
        return self._sum("moved")

    @property
    def back(self) -> int:
        return self._sum("back")

    @property
    def unchanged(self) -> int:
        return self._sum("unchanged")

    @property
    def withdrawn(self) -> int:
        return self._sum("withdrawn")

    def as_dict(self) -> dict[str, Any]:
        """For JSON: also what each column was taken for."""
        columns = self.columns
        return {
            "file": self.description,
            "imported": self.imported,
            "rows": self.rows,
            "added": self.added,
            "changed": self.changed,
            "moved": self.moved,
            "back": self.back,
            "unchanged": self.unchanged,
            "withdrawn": self.withdrawn,
            "rejected": self.rejected,
            "nameless": self.nameless,
            "rejections": [one._asdict() for one in self.rejections],
            "notes": self.notes,
            "districts_created": self.districts_created,
            "schools_created": self.schools_created,
            "columns": {name: columns.heading(name) for name in columns.fields},
            # PostgreSQL keeps no order of an object's names.
            "order_of_columns": list(columns.fields),
            "read_as_misspelt": columns.guessed,
            "attributes": list(columns.attributes),
            "ignored": columns.ignored,
            "is_correction": columns.is_correction,
        }
