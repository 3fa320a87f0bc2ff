"""Collect the figures and rejected rows of a roster."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import TextIO

from django.utils.translation import gettext as _

from accounts.csv_injection import escape_formula
from survey.instrument.spreadsheets.xlsx_rows import SheetRow
from survey.people.rosters.columns import REASON_HEADER, RosterColumns
from survey.people.rosters.file_summary import summarise_file
from survey.people.rosters.row_parser import CellRejection

# Kept for the screen; the file has all of them.
MOST_REJECTIONS_KEPT = 1000
BATCH = 5000


class RejectionLog:
    """Keep the first rejections and pass all on in batches.

    A file of a whole state can have millions.
    """

    def __init__(self, store: Callable[[list[CellRejection]], None]) -> None:
        self.rows = 0
        self.first: list[CellRejection] = []
        self._store = store
        self._pending: list[CellRejection] = []

    def add_row(self, rejections: Sequence[CellRejection]) -> None:
        self.rows += 1
        room = MOST_REJECTIONS_KEPT - len(self.first)
        self.first.extend(rejections[: max(room, 0)])
        self._pending.extend(rejections)
        if len(self._pending) >= BATCH:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            self._store(self._pending)
            self._pending = []


def write_rejected_rows(
    file: TextIO,
    columns: RosterColumns,
    rows: Iterator[SheetRow],
    rejections: Iterator[CellRejection],
) -> int:
    """Write the rejected rows as CSV with the reason in front; return how many.

    The file can be corrected and uploaded as it is. `rejections` must be in the
    order of their rows.
    """
    writer = csv.writer(file)
    width = len(columns.header)
    # A corrected file that is rejected again has a column of old reasons.
    used = [
        index
        for index, text in enumerate(columns.header)
        if text.casefold() != REASON_HEADER.casefold()
    ]
    writer.writerow([REASON_HEADER, *(escape_formula(columns.header[i]) for i in used)])
    written = 0
    for number, row_rejections in groupby(rejections, key=lambda cell: cell.row):
        cells = next((cells for row, cells in rows if row == number), None)
        if cells is None:
            break
        reasons = (f"{cell.column} {cell.reason}".strip() for cell in row_rejections)
        reason = _("Row %(number)s: %(reasons)s") % {
            "number": number,
            "reasons": "; ".join(reasons),
        }
        shown = [*(cells[index] for index in used), *cells[width:]]
        writer.writerow([escape_formula(reason), *map(escape_formula, shown)])
        written += 1
    return written


@dataclass
class SchoolCounts:
    """Count what a roster changes in one school."""

    # Negative for a school that does not exist yet.
    school_id: int
    name: str
    district_id: int
    district_name: str
    # People who could log in before.
    people: int = 0
    added: int = 0
    changed: int = 0
    moved: int = 0
    moved_away: int = 0
    back: int = 0
    unchanged: int = 0
    withdrawn: int = 0


# Of each kind in the report, which is read with every page of the upload.
MOST_PLACES_LISTED = 1000


@dataclass
class PlaceNotes:
    """List districts and schools whose code or name in the file is not ours."""

    # Known codes with another name; names are not changed by a roster.
    renamed: list[dict[str, object]] = field(default_factory=list)
    # Unknown codes whose name is that of one known place.
    taken_by_name: list[dict[str, object]] = field(default_factory=list)
    # Districts that would be created: code, name and similar known names.
    unknown_districts: list[dict[str, object]] = field(default_factory=list)
    # Codes for which the file has several names.
    conflicts: list[dict[str, object]] = field(default_factory=list)

    def add(self, kind: str, **entry: object) -> None:
        entries: list[dict[str, object]] = getattr(self, kind)
        if len(entries) < MOST_PLACES_LISTED and entry not in entries:
            entries.append(entry)


@dataclass
class RosterReport:
    """Describe what a roster would change, or has changed."""

    columns: RosterColumns
    # Of the file's format, such as "UTF-8, separated by commas".
    description: str
    rows: int = 0
    # False where rows were rejected and therefore nothing was imported.
    imported: bool = False
    rejected: int = 0
    # The first ones only.
    rejections: list[CellRejection] = field(default_factory=list)
    # Note -> number of cells.
    notes: dict[str, int] = field(default_factory=dict)
    # What to know of the rows of a workbook.
    remarks: Sequence[str] = ()
    districts_created: list[str] = field(default_factory=list)
    schools_created: list[str] = field(default_factory=list)
    # Schools that would be created: district, code, name and similar known names.
    unknown_schools: list[dict[str, object]] = field(default_factory=list)
    places: PlaceNotes = field(default_factory=PlaceNotes)
    # Unknown schools for which a person can choose known ones, until it is applied.
    school_questions: Sequence[Mapping[str, object]] = ()
    schools: list[SchoolCounts] = field(default_factory=list)
    # Rejected rows whose person is unknown. With any of them nobody is
    # withdrawn: each could be a person who seems to be missing.
    rows_without_id: int = 0
    # People who have left, as the file says, by the school that it names; and how
    # many of them were on the roster and are withdrawn.
    left: int = 0
    left_by_school: dict[str, int] = field(default_factory=dict)
    left_withdrawn: int = 0
    # People who come later: neither invited nor withdrawn.
    later: int = 0
    # Rows of other roles than the administration's.
    other_roles: Counter[str] = field(default_factory=Counter)

    @property
    def added(self) -> int:
        return sum(school.added for school in self.schools)

    @property
    def changed(self) -> int:
        """Count people with any change, including those who moved or came back."""
        changed = sum(school.changed for school in self.schools)
        return changed + self.moved + self.back

    @property
    def moved(self) -> int:
        return sum(school.moved for school in self.schools)

    @property
    def back(self) -> int:
        return sum(school.back for school in self.schools)

    @property
    def unchanged(self) -> int:
        return sum(school.unchanged for school in self.schools)

    @property
    def withdrawn(self) -> int:
        return sum(school.withdrawn for school in self.schools)

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON, with what each column was read as."""
        columns = self.columns
        return {
            "file": self.description,
            "summary": summarise_file(self),
            "imported": self.imported,
            "rows": self.rows,
            "added": self.added,
            "changed": self.changed,
            "moved": self.moved,
            "back": self.back,
            "unchanged": self.unchanged,
            "withdrawn": self.withdrawn,
            "rejected": self.rejected,
            "left": self.left,
            "left_by_school": self.left_by_school,
            "left_withdrawn": self.left_withdrawn,
            "later": self.later,
            "other_roles": dict(self.other_roles),
            "nameless": self.rows_without_id,
            "rejections": [cell._asdict() for cell in self.rejections],
            "notes": self.notes,
            "districts_created": self.districts_created,
            "schools_created": self.schools_created,
            "unknown_schools": self.unknown_schools[:MOST_PLACES_LISTED],
            **asdict(self.places),
            "school_questions": list(self.school_questions),
            "columns": {name: columns.heading(name) for name in columns.fields},
            # PostgreSQL keeps no order of an object's names.
            "order_of_columns": list(columns.fields),
            "read_as_misspelt": columns.guessed,
            "attributes": list(columns.attributes),
            "ignored": columns.ignored,
            "dropped": columns.dropped,
            "is_correction": columns.is_correction,
        }
