"""XLSX, written row by row: numbers are numbers, all else is text."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from xlsxwriter import Workbook

from reports.exports.cells import Cell, Number, escape_formula

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
# A spreadsheet's numbers have no more digits: a longer one stays text.
MOST_DIGITS = 15


class XlsxFile:
    """A piece is a tuple of numbers, texts and None."""

    def __init__(self, path: Path, headers: list[str], *, scratch: Path) -> None:
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
        # Two files of the same answers are the same.
        self._book.set_properties({"created": datetime(2000, 1, 1)})  # noqa: DTZ001
        self._sheet = self._book.add_worksheet("Responses")
        self._sheet.freeze_panes(1, 1)
        self._next = 0
        self.write([(self.piece(tuple(headers)),)])

    def piece(self, cells: tuple[Cell, ...]) -> tuple[Any, ...]:
        return tuple(map(xlsx_cell, cells))

    def write(self, rows: list[tuple[Any, ...]]) -> None:
        number, text = self._sheet.write_number, self._sheet.write_string
        for index, row in enumerate(rows, start=self._next):
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


def xlsx_cell(cell: Cell) -> str | float | None:
    if cell is None or cell == "":
        return None
    if isinstance(cell, Number):
        digits = sum(map(str.isdigit, cell))
        if digits > MOST_DIGITS:
            return str(cell)
        return float(cell) if "." in cell else int(cell)
    return escape_formula(cell)
