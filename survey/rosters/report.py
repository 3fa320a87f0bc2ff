"""What an import did, and which rows it refused."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from accounts.formulas import defused
from survey.rosters.columns import Columns
from survey.rosters.people import Rejection

# Kept for the screen; all of them go to the file.
MOST_REJECTIONS_KEPT = 100


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
