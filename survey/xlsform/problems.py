"""What is wrong with a file, told so that its author can mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

# A hostile file can be wrong in a hundred thousand places. Nobody reads more
# than this, and the count of the others is told.
MOST_TOLD = 300
LONGEST_QUOTE = 120
LONGEST_REASON = 600


class FileRefused(Exception):
    """The file as a whole cannot be read."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong: where (as the author sees it), why, and the text itself.

    `row` counts from 1, the headers' row; `column` is the header, or the
    column's letter where it has none. Both are empty for a whole sheet, and
    `sheet` is empty for the whole file.
    """

    sheet: str
    row: int | None
    column: str
    reason: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" + (f" [{self.text}]" if self.text else "")

    @property
    def place(self) -> str:
        row = f"row {self.row}" if self.row else ""
        return ", ".join(part for part in (self.sheet, row, self.column) if part)


@dataclass
class Findings:
    """Collects problems, which refuse the file, and warnings, which do not."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def refuse(
        self, sheet: str, row: int | None, column: str, reason: str, text: str = ""
    ) -> None:
        _add(self.problems, _printable(sheet, row, column, reason, text))

    def warn(
        self, sheet: str, row: int | None, column: str, reason: str, text: str = ""
    ) -> None:
        _add(self.warnings, _printable(sheet, row, column, reason, text))


def _printable(
    sheet: str, row: int | None, column: str, reason: str, text: str
) -> Problem:
    reason = quoted(reason, LONGEST_REASON)
    return Problem(quoted(sheet), row, quoted(column), reason, quoted(text))


def _add(found: list[Problem], problem: Problem) -> None:
    if problem not in found[-20:]:
        found.append(problem)


def quoted(text: str, longest: int = LONGEST_QUOTE) -> str:
    """Safe to print: one line, no control characters, not too long."""
    line = text[: longest + 1].replace("\n", " ").replace("\t", " ")
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    if len(shown) > longest:
        return shown[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return shown


SHEETS_IN_ORDER = ("", "settings", "survey", "choices")


def in_reading_order(found: Iterable[Problem]) -> list[Problem]:
    """By sheet and row, and no more than a person reads."""
    ordered = sorted(
        dict.fromkeys(found),
        key=lambda problem: (
            SHEETS_IN_ORDER.index(problem.sheet)
            if problem.sheet in SHEETS_IN_ORDER
            else len(SHEETS_IN_ORDER),
            problem.row or 0,
        ),
    )
    if len(ordered) <= MOST_TOLD:
        return ordered
    rest = f"and {len(ordered) - MOST_TOLD} more"
    return [*ordered[:MOST_TOLD], Problem("", None, "", rest)]
