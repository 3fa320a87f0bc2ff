"""Find out where a new question goes."""

from __future__ import annotations

from survey.instrument.drafts import moves
from survey.instrument.drafts.commands import (
    dependents_of,
    groups_around,
    kind_of,
    span_of,
)
from survey.instrument.drafts.option_rows import is_unwritten, options_of
from survey.instrument.drafts.workbook import (
    MADE_NAME,
    MARKS,
    STALE,
    DraftBook,
    Sheet,
)
from survey.instrument.xlsform.types import parse_type

# Of the question that a new page begins with.
EMPTY_KIND = "text"


def untouched_question(book: DraftBook, key: str) -> str:
    """Return the question that a new page began with, if nobody has written it."""
    sheet = book.sheet("survey")
    if not key:
        return ""
    if kind_of(sheet, sheet.row(key)) == "begin":
        span = span_of(sheet, key)
        if span.end - span.start != 2:
            return ""
        key = sheet.rows[span.start + 1].key
    siblings, parent = moves.siblings_of(sheet, key)
    if parent is None or len(siblings) > 1 or moves.is_grid(sheet, parent):
        return ""
    row = sheet.row(key)
    name = sheet.value(row, "name")
    written = {n: text for n, text in row.cells.items() if n not in MARKS}
    new = {sheet.column("type"): EMPTY_KIND, sheet.column("name"): name}
    return key if written == new and not dependents_of(book, {name}) else ""


def unwritten_question(book: DraftBook, key: str) -> str:
    """Return a question that was added and that nobody has written yet, or ""."""
    sheet = book.sheet("survey")
    if not key or kind_of(sheet, sheet.row(key)) in ("begin", "end", "metadata"):
        return ""
    row = sheet.row(key)
    begun = {STALE, MADE_NAME, sheet.column("type"), sheet.column("name")}
    option_set = parse_type(sheet.value(row, "type")).option_set
    is_used = bool(dependents_of(book, {sheet.value(row, "name")}))
    is_begun = row.cells.keys() <= begun and MADE_NAME in row.cells
    if grid_around(sheet, key) or is_used or not is_begun:
        return ""
    options = options_of(book, option_set) if option_set else []
    return key if all(is_unwritten(book, option) for option in options) else ""


def last_row(book: DraftBook) -> str:
    """Return the last row that is in no group; "" for an empty survey."""
    sheet = book.sheet("survey")
    place, last = 0, ""
    while place < len(sheet.rows):
        last = sheet.rows[place].key
        place = span_of(sheet, last).end + 1
    return last


def place_for(book: DraftBook, after: str) -> str:
    """Return the row below which a question is added.

    In a page that is selected, the last one; of a grid, the end of the grid.
    """
    sheet = book.sheet("survey")
    if not after:
        return ""
    row = sheet.row(after)
    grid = grid_around(sheet, after)
    if grid or moves.is_grid(sheet, row):
        return sheet.rows[span_of(sheet, grid or after).end].key
    if kind_of(sheet, row) == "begin":
        last = moves.last_inside(sheet, after)
        if last != after and kind_of(sheet, sheet.row(last)) == "begin":
            is_grid = moves.is_grid(sheet, sheet.row(last))
            return (
                sheet.rows[span_of(sheet, last).end].key
                if is_grid
                else place_for(book, last)
            )
        return last
    return after


def grid_around(sheet: Sheet, key: str) -> str:
    """Return the grid that a statement is in; "" for other rows."""
    around = groups_around(sheet, key)
    return next((group.key for group in around if moves.is_grid(sheet, group)), "")
