"""Write XLSX row by row: numbers as numbers, everything else as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

from xlsxwriter import Workbook

from accounts.csv_injection import escape_formula
from reports.exports.cells import Cell, Number, Row

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
# Excel rounds longer numbers, so these become text.
MOST_DIGITS = 15
XlsxCell = str | float | None


class XlsxFile:
    """A piece is a tuple of numbers, texts and None."""

    def __init__(self, path: Path, headers: Sequence[str], *, scratch: Path) -> None:
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
        self._book.set_properties({"created": datetime(2000, 1, 1)})  # noqa: DTZ001
        self._sheet = self._book.add_worksheet("Responses")
        self._sheet.freeze_panes(1, 1)
        self._next = 0
        self.write([(self.piece(headers),)])

    def piece(self, cells: Sequence[Cell]) -> tuple[XlsxCell, ...]:
        return tuple(map(xlsx_cell, cells))

    def write(self, rows: Sequence[Row]) -> None:
        number, text = self._sheet.write_number, self._sheet.write_string
        pieces = cast("Sequence[Sequence[tuple[XlsxCell, ...]]]", rows)
        for index, row in enumerate(pieces, start=self._next):
            column = 0
            for piece in row:
                for cell in piece:
                    if isinstance(cell, str):
                        text(index, column, cell)
                    elif cell is not None:
                        number(index, column, cell)
                    column += 1
        self._next += len(rows)

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
    return escape_formula(cell)
