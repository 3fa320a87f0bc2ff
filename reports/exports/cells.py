"""The cells of an export, and the interface of its file formats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

# As the validation of pages accepts it; a calculation may have more digits.
NUMBER = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?")
# A calculated or hidden text such as 0007 is not the number 7, in any file format.
PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,299})(\.[0-9]{1,300})?")
# A code such as 01 is not the number 1.
NUMERIC_CODE = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,10})?")


class Number(str):
    """A number, digit by digit as it was typed. Never escaped as a formula."""

    __slots__ = ()


class Date(str):
    """A date, a time of day, or both, in ISO format."""

    __slots__ = ()


Cell = str | Number | Date | None
# Neighbouring cells in the encoding of a file format, and a row of them.
Piece = object
Row = Sequence[Piece]


def number_or_text(value: str, pattern: re.Pattern[str] = NUMBER) -> Cell:
    return Number(value) if pattern.fullmatch(value) else value


class Writer(Protocol):
    """A file format.

    Cells are encoded into pieces, so that pieces which many rows share are
    encoded once.
    """

    def piece(self, cells: Sequence[Cell]) -> Piece: ...

    def write(self, rows: Sequence[Row]) -> None: ...

    def close(self) -> None: ...
