"""What an import did, and which rows it refused."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from survey.rosters.columns import Columns
from survey.rosters.people import Rejection

# Kept for the screen; all of them go to the file.
MOST_REJECTIONS_KEPT = 100

_FORMULA_SIGNS = frozenset("=+-@")
# Where the list separator is a semicolon, as in most of Europe, Excel begins
# a new cell after one, and takes none of the quotes around the old one.
_NEW_CELL = re.compile(r'([;\t\r\n][ "]*)(?=(.))', re.DOTALL)


def defused(cell: str) -> str:
    """The cell with an apostrophe wherever Excel would begin to run it.

    Full-width signs count too: some versions of Excel read them as the plain
    ones.
    """
    start = _plain(cell.lstrip(" ")[:1])
    runs = start in _FORMULA_SIGNS or (start and unicodedata.category(start) == "Cc")
    cell = _NEW_CELL.sub(
        lambda found: found[1] + "'" * (_plain(found[2]) in _FORMULA_SIGNS), cell
    )
    return f"'{cell}" if runs else cell


def _plain(sign: str) -> str:
    return unicodedata.normalize("NFKC", sign)[:1]


class RejectionLog:
    """Keeps the first rejections and writes all to `file`, as CSV."""

    def __init__(self, file: TextIO | None = None) -> None:
        self.rows = 0
        self.kept: list[Rejection] = []
        self._writer = csv.writer(file) if file else None
        if self._writer:
            self._writer.writerow(Rejection._fields)

    def add(self, of_one_row: Sequence[Rejection]) -> None:
        self.rows += 1
        room = MOST_REJECTIONS_KEPT - len(self.kept)
        self.kept.extend(of_one_row[: max(room, 0)])
        if self._writer:
            self._writer.writerows(
                [one.row, *map(defused, one[1:])] for one in of_one_row
            )


@dataclass
class RosterReport:
    """`imported` is False where rows were rejected and nothing was imported."""

    columns: Columns
    description: str
    rows: int = 0
    imported: bool = False
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    rejected: int = 0
    # The first ones only.
    rejections: list[Rejection] = field(default_factory=list)
    # Note -> how many cells.
    notes: dict[str, int] = field(default_factory=dict)
    districts_created: list[str] = field(default_factory=list)
    schools_created: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: also what each column was taken for."""
        columns = self.columns
        return {
            "file": self.description,
            "imported": self.imported,
            "rows": self.rows,
            "added": self.added,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "rejected": self.rejected,
            "rejections": [one._asdict() for one in self.rejections],
            "notes": self.notes,
            "districts_created": self.districts_created,
            "schools_created": self.schools_created,
            "columns": {name: columns.heading(name) for name in columns.fields},
            "read_as_misspelt": columns.guessed,
            "attributes": list(columns.attributes),
            "ignored": columns.ignored,
        }
