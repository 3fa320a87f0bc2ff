"""CSV in UTF-8, after RFC 4180; safe to open in a spreadsheet."""

from __future__ import annotations

import codecs
import re
from typing import IO, Any

from reports.exports.cells import Cell, Number, escape_formula

# What Python's own writer quotes as well.
_TO_QUOTE = re.compile(r'[,"\r\n]')


class CsvFile:
    """A piece is the text between two commas, or between more of them."""

    def __init__(self, file: IO[bytes], headers: list[str], *, bom: bool) -> None:
        self._file = file
        if bom:
            file.write(codecs.BOM_UTF8)
        self.write([(self.piece(tuple(headers)),)])

    def piece(self, cells: tuple[Cell, ...]) -> str:
        return ",".join(map(csv_cell, cells))

    def write(self, rows: list[tuple[Any, ...]]) -> None:
        self._file.write("".join([f"{','.join(row)}\r\n" for row in rows]).encode())

    def close(self) -> None:
        """Nothing comes at the end of a CSV file."""


def csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Number):
        return str(cell)
    text = escape_formula(cell)
    if _TO_QUOTE.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text
