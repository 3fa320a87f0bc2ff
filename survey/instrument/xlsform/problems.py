"""Collect what is wrong with a file, so that its author can fix it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

# A hostile file can be wrong in a hundred thousand places. Of more than these,
# only the number is reported.
MOST_REPORTED = 300
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
        row = _("row %(row)s") % {"row": self.row} if self.row else ""
        return ", ".join(part for part in (self.sheet, row, self.column) if part)


@dataclass
class Findings:
    """Problems, which refuse the file, and warnings, which do not."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def refuse(
        self, sheet: str, row: int | None, column: str, reason: str, text: str = ""
    ) -> None:
        add_problem(self.problems, sheet, row, column, reason, text)

    def warn(
        self, sheet: str, row: int | None, column: str, reason: str, text: str = ""
    ) -> None:
        add_problem(self.warnings, sheet, row, column, reason, text)


def add_problem(
    problems: list[Problem],
    sheet: str,
    row: int | None,
    column: str,
    reason: str,
    text: str,
) -> None:
    problem = Problem(
        quoted(sheet), row, quoted(column), quoted(reason, LONGEST_REASON), quoted(text)
    )
    # Only the latest: comparing with all would take quadratic time for a file
    # that is wrong everywhere. `in_reading_order` drops the other repetitions.
    if problem not in problems[-20:]:
        problems.append(problem)


def quoted(text: str, longest: int = LONGEST_QUOTE) -> str:
    """Make a text safe to print: one line, no control characters, not too long."""
    line = text[: longest + 1].replace("\n", " ").replace("\t", " ")
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    if len(shown) > longest:
        return shown[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return shown


SHEETS_IN_ORDER = ("", "settings", "survey", "choices", "measures")


def in_reading_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort by sheet and row, and keep as many as a person reads."""
    ordered = sorted(
        dict.fromkeys(problems),
        key=lambda problem: (
            SHEETS_IN_ORDER.index(problem.sheet)
            if problem.sheet in SHEETS_IN_ORDER
            else len(SHEETS_IN_ORDER),
            problem.row or 0,
        ),
    )
    if len(ordered) <= MOST_REPORTED:
        return ordered
    rest = _("and %(ordered)s more") % {"ordered": len(ordered) - MOST_REPORTED}
    return [*ordered[:MOST_REPORTED], Problem("", None, "", rest)]
