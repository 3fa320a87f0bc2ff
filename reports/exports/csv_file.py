"""Write CSV in UTF-8 (RFC 4180) that is safe to open in a spreadsheet."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Sequence
from typing import IO, cast

from accounts.csv_injection import escape_formula
from reports.exports.cells import Cell, Number, Row

# The characters for which Python's csv module quotes as well.
_TO_QUOTE = re.compile(r'[,"\r\n]')


class CsvFile:
    """A piece is the text of its cells, joined by commas."""

    def __init__(self, file: IO[bytes], headers: Sequence[str], *, bom: bool) -> None:
        self._file = file
        if bom:
            file.write(codecs.BOM_UTF8)
        self.write([(self.piece(headers),)])

    def piece(self, cells: Sequence[Cell]) -> str:
        return ",".join(map(csv_cell, cells))

    def write(self, rows: Sequence[Row]) -> None:
        texts = cast("Sequence[Sequence[str]]", rows)
        self._file.write("".join([f"{','.join(row)}\r\n" for row in texts]).encode())

    def close(self) -> None:
        """Wait until the file is on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())


def csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Number):
        return str(cell)
    text = escape_formula(cell)
    if _TO_QUOTE.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text
