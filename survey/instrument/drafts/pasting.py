"""Read what is pasted into a list: lines of a document, or columns of a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# What word processors put before the entries of a list. Two of them are letters in
# the fonts of symbols.
BULLET = re.compile(r"\s*(?:[·•‣◦▪▫●○■□➢✓–—*-]\s+|[o§]\t\s*)")
NUMBER = re.compile(r"\s*\(?(\d{1,3})[.)]\s+")
LETTER = re.compile(r"\s*\(?([a-z])[.)]\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pasted:
    """`rows` have a text for each language; `has_…` say what was left out."""

    rows: list[list[str]]
    has_marks: bool = False
    has_more_columns: bool = False


def read_pasted(text: str, columns: int) -> Pasted:
    """Divide pasted lines into one text for each language.

    Bullets and numbers of lists are left out, and columns that no language is shown
    for.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    bare = _without_marks(lines)
    cells = [[" ".join(cell.split()) for cell in line.split("\t")] for line in bare]
    rows = [row[:columns] for row in cells if any(row[:columns])]
    return Pasted(rows, bare != lines, any(any(row[columns:]) for row in cells))


def _without_marks(lines: Sequence[str]) -> list[str]:
    bare = [
        BULLET.sub("", line, count=1) if BULLET.match(line) else line for line in lines
    ]
    for pattern, first in ((NUMBER, "1"), (LETTER, "a")):
        marks = [match[1].lower() for line in bare if (match := pattern.match(line))]
        # A single one may be a part of the text.
        if (
            len(marks) > 1
            and len(marks) == len(bare)
            and marks == _counted(first, len(marks))
        ):
            bare = [pattern.sub("", line, count=1) for line in bare]
    return bare


def _counted(first: str, length: int) -> list[str]:
    if first.isdecimal():
        return [str(number) for number in range(1, length + 1)]
    return [chr(ord(first) + step) for step in range(length)]


def repeated_texts(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the texts that are there more than once, in the first language."""
    seen: set[str] = set()
    repeated = {}
    for texts in rows:
        folded = texts[0].casefold()
        if folded in seen:
            repeated[folded] = texts[0]
        seen.add(folded)
    return [*repeated.values()]
