"""What stands in a cell, and what every format does with it."""

from __future__ import annotations

import re
from typing import Any, Protocol

# The one place that knows where formulas are defused.
from accounts.csv_injection import escape_formula as escape_formula

# As a page's answers are checked; a calculation may have more digits.
NUMBER = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?")
# A code such as 01 is another one than 1.
NUMERIC_CODE = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,10})?")


class Number(str):
    """A number as it was typed, digit by digit: no formula, whatever its sign."""

    __slots__ = ()


# Text, a number, or nothing at all.
Cell = str | Number | None


def number_or_text(value: str, pattern: re.Pattern[str] = NUMBER) -> Cell:
    return Number(value) if pattern.fullmatch(value) else value


class Writer(Protocol):
    """One format. Cells that come again and again are encoded once.

    A piece is some cells that stand side by side, encoded; a row is a sequence
    of pieces. What they are made of is the format's own affair.
    """

    def piece(self, cells: tuple[Cell, ...]) -> Any: ...

    def write(self, rows: list[tuple[Any, ...]]) -> None: ...

    def close(self) -> None: ...
