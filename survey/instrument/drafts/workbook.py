"""The sheets of a draft in memory, and the operations that change them.

A change is a list of operations, each of which has an inverse:

    {"op": "cells", "sheet": "survey", "key": "k3", "before": {"2": ""}, "after": {...}}
    {"op": "insert", "sheet": "survey", "after": "k3", "rows": [["k4", {"1": "text"}]]}
    {"op": "delete", ...}, as "insert"
    {"op": "move", "sheet": "survey", "keys": ["k4"], "before": "k3", "after": "k9"}

Rows are named by their keys: the row numbers of others change meanwhile. `after` is
the row that the others follow, or "" for the top of the sheet; cells are by column
number, "" where they are blank. Cells of the row "" are headers of languages. Those
that came with a text are `optional`: they stay while somebody else has a text there.
Other added columns and sheets stay when an operation is undone: blank ones mean
nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _

from survey.instrument.xlsform.columns import SheetColumns, read_columns
from survey.instrument.xlsform.languages import Language
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.workbook import (
    CONTROL,
    MAX_COLUMNS,
    MAX_ROWS,
    MAX_TEXT,
    SHEETS,
    SurveySheet,
)

Operation = dict[str, Any]
# Row 1 of a sheet has the headers.
FIRST_ROW = 2
# No column of the workbook: the numbers of the columns of a row whose translations
# are older than the original.
STALE = 0
# Another one: the name that was made from the text of a row. While the row has it, no
# author has typed one, and a new text renews it.
MADE_NAME = -2
MARKS = frozenset((STALE, MADE_NAME))
# The key of the row of headers in an operation.
HEADER_ROW = ""
# How a column is headed that a workbook does not have yet.
HEADERS = {
    ("survey", "guidance"): "guidance_hint",
    ("choices", "list"): "list_name",
    ("settings", "name"): "form_id",
    ("settings", "title"): "form_title",
}


class ChangeConflict(Exception):
    """The rows are not as the operation expects them; the message says why."""


class LimitReached(ValueError):
    """A sheet or a text would become larger than a workbook may be."""


@dataclass(slots=True)
class Row:
    key: str
    cells: dict[int, str] = field(default_factory=dict)

    @property
    def stale(self) -> set[int]:
        """The columns whose translations are older than the original."""
        return {int(number) for number in self.cells.get(STALE, "").split()}


@dataclass
class Sheet:
    """`columns[n - 1]` is the header of column n; `rows` are below the headers."""

    name: str
    columns: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def index(self, key: str) -> int:
        """Return the place of a row. Raises ChangeConflict if it is gone."""
        for place, row in enumerate(self.rows):
            if row.key == key:
                return place
        raise ChangeConflict(_("Somebody has deleted this meanwhile."))

    def row(self, key: str) -> Row:
        return self.rows[self.index(key)]

    @property
    def headers(self) -> dict[int, str]:
        return {
            number: header for number, header in enumerate(self.columns, 1) if header
        }

    @cached_property
    def known(self) -> SheetColumns:
        """The meaning of the columns; forgotten when one is added.

        Those of an author's own sheets, such as a codebook, have none.
        """
        if self.name not in SHEETS:
            return SheetColumns()
        return read_columns(SurveySheet(self.name, self.headers), Findings())

    def column(self, key: str, language: Language | None = None) -> int:
        """Return the number of the column with a meaning, and add it if needed.

        A column that names no language is in the draft's default one: pass None for
        that. Raises LimitReached.
        """
        number = self.column_or_none(key, language)
        if number is not None:
            return number
        if len(self.columns) >= MAX_COLUMNS:
            raise LimitReached(
                _("A sheet has at most %(most)s columns.") % {"most": MAX_COLUMNS}
            )
        header = HEADERS.get((self.name, key), key)
        if language is not None:
            header = f"{header}::{language.name} ({language.code})"
        self.columns.append(header)
        self.__dict__.pop("known", None)
        return len(self.columns)

    def column_or_none(self, key: str, language: Language | None = None) -> int | None:
        code = language.code if language else ""
        for number, column in self.known.known.items():
            named = column.language.code if column.language else ""
            if column.key == key and named == code:
                return number
        return None

    def value(self, row: Row, key: str) -> str:
        """Return the cell of a row in a column without a language."""
        number = self.column_or_none(key)
        return "" if number is None else row.cells.get(number, "")

    def as_survey_sheet(self) -> SurveySheet:
        """Return the sheet as the reader of workbooks takes it."""
        rows = {
            number: {n: text for n, text in row.cells.items() if n not in MARKS}
            for number, row in enumerate(self.rows, FIRST_ROW)
        }
        written = {number: cells for number, cells in rows.items() if cells}
        return SurveySheet(self.name, self.headers, written)


class DraftBook:
    """The sheets of a draft by name, and the operations done to them so far."""

    def __init__(self, sheets: Mapping[str, Sheet] | None = None) -> None:
        self.sheets: dict[str, Sheet] = dict(sheets or {})
        self.operations: list[Operation] = []
        self.widths = {name: len(sheet.columns) for name, sheet in self.sheets.items()}

    def sheet(self, name: str) -> Sheet:
        return self.sheets.setdefault(name, Sheet(name))

    def set_cells(self, sheet: Sheet, key: str, texts: Mapping[int, str]) -> None:
        """Write texts into a row, by column number; "" makes a cell blank."""
        row = sheet.row(key)
        after = {number: cleaned(text) for number, text in texts.items()}
        after = {
            number: text
            for number, text in after.items()
            if row.cells.get(number, "") != text
        }
        if after:
            self.do(
                {
                    "op": "cells",
                    "sheet": sheet.name,
                    "key": key,
                    "before": {str(n): row.cells.get(n, "") for n in after},
                    "after": {str(n): text for n, text in after.items()},
                }
            )

    def add_column(self, sheet: Sheet, key: str, language: Language) -> int:
        """Return the column of a language; one that is added can be undone."""
        number = sheet.column_or_none(key, language)
        if number is None:
            number = sheet.column(key, language)
            header = sheet.columns.pop()
            sheet.columns.append("")
            self.set_header(sheet, number, header)
        return number

    def set_header(self, sheet: Sheet, number: int, header: str) -> None:
        self.do(
            {
                "op": "cells",
                "sheet": sheet.name,
                "key": HEADER_ROW,
                "before": {str(number): sheet.columns[number - 1]},
                "after": {str(number): header},
            }
        )

    def insert(
        self, sheet: Sheet, after: str, rows: Sequence[Mapping[int, str]]
    ) -> list[str]:
        """Insert rows below the row `after`, or at the top; return their keys."""
        made: list[tuple[str, dict[str, str]]] = [
            (
                new_key(),
                {str(number): cleaned(text) for number, text in cells.items() if text},
            )
            for cells in rows
        ]
        self.do(
            {
                "op": "insert",
                "sheet": sheet.name,
                "after": after,
                "rows": [*map(list, made)],
            }
        )
        return [key for key, _cells in made]

    def delete(self, sheet: Sheet, keys: Iterable[str]) -> None:
        """Delete rows, which need not be beside each other."""
        doomed = set(keys)
        start = len(sheet.rows) - 1
        while start >= 0:
            end = start
            while start >= 0 and sheet.rows[start].key in doomed:
                start -= 1
            if start < end:
                self.do(
                    {
                        "op": "delete",
                        "sheet": sheet.name,
                        "after": sheet.rows[start].key if start >= 0 else "",
                        "rows": [
                            [row.key, {str(n): text for n, text in row.cells.items()}]
                            for row in sheet.rows[start + 1 : end + 1]
                        ],
                    }
                )
            else:
                start -= 1

    def move(self, sheet: Sheet, keys: Sequence[str], after: str) -> None:
        """Move rows that follow each other below the row `after`, or to the top."""
        start = sheet.index(keys[0])
        before = sheet.rows[start - 1].key if start else ""
        if after in keys or after == before:
            return
        self.do(
            {
                "op": "move",
                "sheet": sheet.name,
                "keys": [*keys],
                "before": before,
                "after": after,
            }
        )

    def do(self, operation: Operation) -> None:
        """Apply an operation. Raises ChangeConflict and changes nothing then."""
        sheet = self.sheet(operation["sheet"])
        if operation.get("optional") and _is_needless(sheet, operation):
            return
        APPLY[operation["op"]](sheet, operation)
        if len(sheet.rows) > MAX_ROWS - 1:
            raise LimitReached(
                _("A sheet has at most %(most)s rows.") % {"most": f"{MAX_ROWS:,}"}
            )
        self.operations.append(operation)

    def record_columns(self) -> None:
        """Put before the operations which columns of languages they have added."""
        recorded = {
            (operation["sheet"], number)
            for operation in self.operations
            if operation.get("key") == HEADER_ROW
            for number in operation["after"]
        }
        self.operations[:0] = [
            {
                "op": "cells",
                "sheet": name,
                "key": HEADER_ROW,
                "before": {str(number): ""},
                "after": {str(number): sheet.columns[number - 1]},
                "optional": True,
            }
            for name, sheet in self.sheets.items()
            if name in SHEETS and len(sheet.columns) > self.widths.get(name, 0)
            for number, column in sheet.known.known.items()
            if column.language and number > self.widths.get(name, 0)
            if (name, str(number)) not in recorded
        ]

    def finish_languages(self) -> None:
        """Remove what is left of languages whose columns the operations removed.

        Raises ChangeConflict if somebody has a text in one of them.
        """
        gone = {
            language.code
            for operation in self.operations
            if operation.get("key") == HEADER_ROW and not operation.get("optional")
            for number, header in operation["before"].items()
            if not operation["after"][number]
            and (language := language_of_header(operation["sheet"], header))
        }
        for name in self.sheets.keys() & {*SHEETS} if gone else ():
            sheet = self.sheets[name]
            for number, column in [*sheet.known.known.items()]:
                if column.language and column.language.code in gone:
                    self.set_header(sheet, number, "")


def language_of_header(sheet: str, header: str) -> Language | None:
    column = Sheet(sheet, [header]).known.known.get(1)
    return column.language if column else None


def inverse(operations: Iterable[Operation]) -> list[Operation]:
    """Return the operations that undo these, in the order to do them."""
    return [_inverse_of(operation) for operation in reversed([*operations])]


def _inverse_of(operation: Operation) -> Operation:
    kind = operation["op"]
    if kind in ("cells", "move"):
        return {
            **operation,
            "before": operation["after"],
            "after": operation["before"],
        }
    return {**operation, "op": "delete" if kind == "insert" else "insert"}


def new_key() -> str:
    # 40 bits: two rows of one sheet with 10,000 get the same in a draft of 20,000.
    return secrets.token_hex(6)


def first_key(sheet: str, number: int) -> str:
    """Return the key of a row of a workbook; those of sheets differ."""
    prefix = "r" if sheet == "survey" else sheet[:1]
    return f"{prefix}{number}"


def cleaned(text: str) -> str:
    """Return a text as a cell of a workbook holds it. Raises LimitReached."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = CONTROL.sub("", text).replace("\N{NO-BREAK SPACE}", " ").strip()
    if len(text) > MAX_TEXT:
        raise LimitReached(
            _("Use at most %(longest_text)s characters.")
            % {"longest_text": f"{MAX_TEXT:,}"}
        )
    return text


def _by_number(cells: Mapping[str, str]) -> dict[int, str]:
    return {int(number): text for number, text in cells.items()}


def _place_after(sheet: Sheet, key: str) -> int:
    return sheet.index(key) + 1 if key else 0


def _apply_cells(sheet: Sheet, operation: Operation) -> None:
    if operation["key"] == HEADER_ROW:
        _apply_headers(sheet, operation)
        return
    row = sheet.row(operation["key"])
    headers = MARKS | sheet.headers.keys()
    for number, text in _by_number(operation["after"]).items():
        if text and number not in headers and number not in row.cells:
            raise ChangeConflict(_("The survey no longer has this language."))
    for number, text in _by_number(operation["before"]).items():
        if row.cells.get(number, "") != text:
            raise ChangeConflict(_("Somebody has changed this meanwhile."))
    for number, text in _by_number(operation["after"]).items():
        if text:
            row.cells[number] = text
        else:
            row.cells.pop(number, None)


def _is_needless(sheet: Sheet, operation: Operation) -> bool:
    """Return whether headers are there already, or others have texts below them."""
    return any(
        sheet.columns[number - 1] == header
        or (not header and any(number in row.cells for row in sheet.rows))
        for number, header in _by_number(operation["after"]).items()
    )


def _apply_headers(sheet: Sheet, operation: Operation) -> None:
    after = _by_number(operation["after"])
    for number, header in _by_number(operation["before"]).items():
        is_written = any(number in row.cells for row in sheet.rows)
        if sheet.columns[number - 1] != header or (is_written and not after[number]):
            raise ChangeConflict(_("Somebody has changed this meanwhile."))
    for number, header in after.items():
        sheet.columns[number - 1] = header
    sheet.__dict__.pop("known", None)


def _apply_insert(sheet: Sheet, operation: Operation) -> None:
    place = _place_after(sheet, operation["after"])
    sheet.rows[place:place] = [
        Row(key, _by_number(cells)) for key, cells in operation["rows"]
    ]


def _apply_delete(sheet: Sheet, operation: Operation) -> None:
    rows = [Row(key, _by_number(cells)) for key, cells in operation["rows"]]
    start = sheet.index(rows[0].key)
    if sheet.rows[start : start + len(rows)] != rows:
        raise ChangeConflict(_("Somebody has changed this meanwhile."))
    del sheet.rows[start : start + len(rows)]


def _apply_move(sheet: Sheet, operation: Operation) -> None:
    keys = operation["keys"]
    start = sheet.index(keys[0])
    rows = sheet.rows[start : start + len(keys)]
    rest = Sheet(sheet.name, rows=sheet.rows[:start] + sheet.rows[start + len(keys) :])
    if [row.key for row in rows] != keys:
        raise ChangeConflict(_("Somebody has moved this meanwhile."))
    place = _place_after(rest, operation["after"])
    sheet.rows[:] = rest.rows[:place] + rows + rest.rows[place:]


APPLY = {
    "cells": _apply_cells,
    "insert": _apply_insert,
    "delete": _apply_delete,
    "move": _apply_move,
}
