"""Write XLSX row by row: numbers and dates as such, everything else as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import cast

from django.conf import settings
from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from accounts.csv_injection import escape_formula
from reports.exports.cells import Cell, Date, Number, Row

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
# Excel rounds longer numbers, so these become text.
MOST_DIGITS = 15
# Excel counts the days from here; before March 1900 it does so wrongly.
DAY_ZERO, FIRST_DAY = date(1899, 12, 30), date(1900, 3, 1)
SECONDS_OF_A_DAY = 86_400
# Columns, in characters: a day fits into the narrowest, and long texts are cut off.
NARROWEST, WIDEST = 11, 40


class ExcelDay(float):
    """The days since DAY_ZERO."""

    format = "yyyy-mm-dd"


class ExcelMoment(float):
    """The days since DAY_ZERO, with a fraction."""

    format = "yyyy-mm-dd hh:mm:ss"


class ExcelTime(float):
    """A fraction of a day."""

    format = "hh:mm:ss"


XlsxCell = str | float | None


class XlsxFile:
    """A piece is a tuple of numbers, texts and None."""

    def __init__(
        self,
        path: Path,
        headers: Sequence[str],
        *,
        scratch: Path,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Begin the sheet of responses; `notes` explain columns, by header."""
        self._book = Workbook(
            str(path),
            {
                "constant_memory": True,
                "strings_to_formulas": False,
                "strings_to_numbers": False,
                "strings_to_urls": False,
                "tmpdir": str(scratch),
            },
        )
        # A fixed date, so that the same answers make the same file.
        self._book.set_properties(
            {
                "created": datetime(2000, 1, 1),  # noqa: DTZ001
                "comments": f"Groundswell {settings.VERSION}",
            }
        )
        self._formats: dict[type, Format] = {
            kind: self._book.add_format({"num_format": kind.format})
            for kind in (ExcelDay, ExcelMoment, ExcelTime)
        }
        self._bold = self._book.add_format({"bold": True})
        self._begin_sheet("Responses", headers, notes or {})

    def _begin_sheet(
        self, name: str, headers: Sequence[str], notes: Mapping[str, str]
    ) -> None:
        self._sheet: Worksheet = self._book.add_worksheet(name)
        self._sheet.freeze_panes(1, 1)
        for column, header in enumerate(headers):
            width = min(max(len(header) + 2, NARROWEST), WIDEST)
            self._sheet.set_column(column, column, width)
            self._sheet.write_string(0, column, str(xlsx_cell(header)), self._bold)
            # Now, because a row that has been left is on the disk.
            if header in notes:
                self._sheet.write_comment(0, column, notes[header])
        self._next = 1

    def piece(self, cells: Sequence[Cell]) -> tuple[XlsxCell, ...]:
        return tuple(map(xlsx_cell, cells))

    def write(self, rows: Sequence[Row]) -> None:
        number, text = self._sheet.write_number, self._sheet.write_string
        formats = self._formats
        pieces = cast("Sequence[Sequence[tuple[XlsxCell, ...]]]", rows)
        for index, row in enumerate(pieces, start=self._next):
            column = 0
            for piece in row:
                for cell in piece:
                    if isinstance(cell, str):
                        text(index, column, cell)
                    elif cell is not None:
                        number(index, column, cell, formats.get(type(cell)))
                    column += 1
        self._next += len(rows)

    def write_codebook(
        self, headers: Sequence[str], rows: Iterable[Sequence[Cell]]
    ) -> None:
        """Write a second sheet, after the last row of the first one."""
        self._begin_sheet("Codebook", headers, {})
        for cells in rows:
            # More columns than a sheet has rows: the codebook file has them all.
            if self._next == MOST_ROWS:
                break
            self.write([(self.piece(cells),)])

    def close(self) -> None:
        self._book.close()


def xlsx_cell(cell: Cell) -> XlsxCell:
    if cell is None or cell == "":
        return None
    if isinstance(cell, Number):
        digits = sum(map(str.isdigit, cell))
        if digits > MOST_DIGITS:
            return str(cell)
        return float(cell) if "." in cell else int(cell)
    if isinstance(cell, Date):
        return excel_date(cell)
    return escape_formula(cell)


def excel_date(cell: str) -> XlsxCell:
    """Return a date as Excel counts it, or the text of one that it cannot count."""
    if ":" in cell and "-" not in cell:
        return ExcelTime(_fraction(time.fromisoformat(cell)))
    moment = datetime.fromisoformat(cell)
    if moment.date() < FIRST_DAY:
        return str(cell)
    days = (moment.date() - DAY_ZERO).days
    if ":" not in cell:
        return ExcelDay(days)
    return ExcelMoment(days + _fraction(moment.time()))


def _fraction(moment: time) -> float:
    seconds = 3600 * moment.hour + 60 * moment.minute + moment.second
    return seconds / SECONDS_OF_A_DAY
