"""Change the sheets of a draft into those of another state of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from survey.instrument.drafts.workbook import DraftBook, Row, Sheet


def make_equal(book: DraftBook, goal: DraftBook) -> None:
    """Give `book` the rows of `goal`, by as few operations as it takes.

    Rows are the same if their keys are. Columns are those of the same draft: none has
    moved, and a header is there or blank.
    """
    for name in {**book.sheets, **goal.sheets}:
        sheet, wanted = book.sheet(name), goal.sheets.get(name) or Sheet(name)
        changed = {
            number: header
            for number, header in enumerate(wanted.columns, 1)
            if sheet.columns[number - 1] != header
        }
        for number, header in changed.items():
            if header:
                book.set_header(sheet, number, header)
        _make_rows_equal(book, sheet, wanted)
        # Their texts are gone by now.
        for number, header in changed.items():
            if not header:
                book.set_header(sheet, number, header)


def _make_rows_equal(book: DraftBook, sheet: Sheet, wanted: Sheet) -> None:
    rows = {row.key: row for row in sheet.rows}
    keys = {row.key for row in wanted.rows}
    if doomed := rows.keys() - keys:
        book.delete(sheet, doomed)
    for row in wanted.rows:
        if row.key in rows:
            _make_cells_equal(book, sheet, rows[row.key], row)
    places = {row.key: place for place, row in enumerate(sheet.rows)}
    known = [places.get(row.key) for row in wanted.rows]
    staying = longest_rising(known)
    place, after = 0, ""
    while place < len(wanted.rows):
        end = place + 1
        if place not in staying:
            # Those that follow each other are inserted, or moved, together.
            while end < len(known) and end not in staying and _follows(known, end):
                end += 1
            moved = wanted.rows[place:end]
            if known[place] is None:
                _insert(book, sheet, after, moved)
            else:
                book.move(sheet, [row.key for row in moved], after)
        after = wanted.rows[end - 1].key
        place = end


def _follows(known: Sequence[int | None], place: int) -> bool:
    before, this = known[place - 1], known[place]
    if before is None or this is None:
        return before is this
    return this == before + 1


def _insert(book: DraftBook, sheet: Sheet, after: str, rows: Sequence[Row]) -> None:
    book.do(
        {
            "op": "insert",
            "sheet": sheet.name,
            "after": after,
            "rows": [
                [row.key, {str(n): text for n, text in row.cells.items()}]
                for row in rows
            ],
        }
    )


def _make_cells_equal(book: DraftBook, sheet: Sheet, row: Row, wanted: Row) -> None:
    numbers = [
        number
        for number in sorted(row.cells.keys() | wanted.cells.keys())
        if row.cells.get(number, "") != wanted.cells.get(number, "")
    ]
    if numbers:
        book.do(
            {
                "op": "cells",
                "sheet": sheet.name,
                "key": row.key,
                "before": {str(n): row.cells.get(n, "") for n in numbers},
                "after": {str(n): wanted.cells.get(n, "") for n in numbers},
            }
        )


def longest_rising(values: Sequence[int | None]) -> set[int]:
    """Return the places of the longest rising sequence of values."""
    tails: list[int] = []
    places: list[int] = []
    before: list[int | None] = [None] * len(values)
    for place, value in enumerate(values):
        if value is None:
            continue
        slot = bisect_left(tails, value)
        if slot == len(tails):
            tails.append(value)
            places.append(place)
        else:
            tails[slot], places[slot] = value, place
        before[place] = places[slot - 1] if slot else None
    rising: set[int] = set()
    place_or_none = places[-1] if places else None
    while place_or_none is not None:
        rising.add(place_or_none)
        place_or_none = before[place_or_none]
    return rising
