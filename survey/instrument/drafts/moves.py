"""Move questions, pages and options one place up or down."""

from __future__ import annotations

from django.utils.translation import gettext as _

from survey.instrument.drafts.commands import (
    TABLE_LIST,
    CommandRefused,
    groups_around,
    is_page,
    keys_of,
    kind_of,
    move_rows,
    span_of,
)
from survey.instrument.drafts.workbook import DraftBook, Row, Sheet


def move_up(book: DraftBook, key: str) -> bool:
    """Move a question or group one place up; return whether there was a place.

    A question at the start of its page becomes the last one of the page before.
    """
    sheet = book.sheet("survey")
    siblings, parent = siblings_of(sheet, key)
    place = [row.key for row in siblings].index(key)
    if place:
        _move_above(book, key, siblings, place - 1, parent)
        return True
    if parent is None:
        return False
    around, outer = siblings_of(sheet, parent.key)
    place = [row.key for row in around].index(parent.key)
    if place and enters(sheet, key, around[place - 1]):
        move_rows(book, key, after=last_inside(sheet, around[place - 1].key))
    elif leaves(sheet, key, parent):
        _move_below(book, key, around[place - 1] if place else None, outer)
    else:
        return False
    return True


def move_down(book: DraftBook, key: str) -> bool:
    """Move a question or group one place down; return whether there was a place."""
    sheet = book.sheet("survey")
    siblings, parent = siblings_of(sheet, key)
    place = [row.key for row in siblings].index(key)
    if place + 1 < len(siblings):
        after = siblings[place + 1]
        if enters(sheet, key, after):
            move_rows(book, key, after=after.key)
        else:
            move_past(book, key, after.key)
        return True
    if parent is None:
        return False
    around, _outer = siblings_of(sheet, parent.key)
    place = [row.key for row in around].index(parent.key)
    if place + 1 < len(around) and enters(sheet, key, around[place + 1]):
        move_rows(book, key, after=around[place + 1].key)
    elif leaves(sheet, key, parent):
        move_past(book, key, parent.key)
        delete_if_empty(book, parent.key)
    else:
        return False
    return True


def _move_above(
    book: DraftBook, key: str, siblings: list[Row], place: int, parent: Row | None
) -> None:
    sheet = book.sheet("survey")
    if enters(sheet, key, siblings[place]):
        move_rows(book, key, after=last_inside(sheet, siblings[place].key))
    else:
        _move_below(book, key, siblings[place - 1] if place else None, parent)


def _move_below(
    book: DraftBook, key: str, sibling: Row | None, parent: Row | None
) -> None:
    """Move a row below another one, or to the start of a group or of the survey."""
    if sibling is not None:
        place_below(book, key, sibling.key)
    else:
        move_rows(book, key, after=parent.key if parent else "")


def siblings_of(sheet: Sheet, key: str) -> tuple[list[Row], Row | None]:
    """Return the rows beside a row, itself included, and the group around them."""
    around = groups_around(sheet, key)
    parent = around[-1] if around else None
    place = sheet.index(parent.key) + 1 if parent else 0
    end = span_of(sheet, parent.key).end if parent else len(sheet.rows)
    siblings = []
    while place < end:
        row = sheet.rows[place]
        place = span_of(sheet, row.key).end + 1
        if row.cells or row.key == key:
            siblings.append(row)
    return siblings, parent


def enters(sheet: Sheet, key: str, group: Row) -> bool:
    """Return whether a row that moves goes into a group, instead of past it.

    Questions and grids go into pages, and pages into sections.
    """
    if kind_of(sheet, group) != "begin" or is_grid(sheet, group):
        return False
    moved = sheet.row(key)
    if is_page(sheet, moved):
        return not is_page(sheet, group)
    return kind_of(sheet, moved) != "begin" or is_grid(sheet, moved)


def leaves(sheet: Sheet, key: str, parent: Row) -> bool:
    """Return whether a row may go out of its group: a question stays in a page."""
    moved = sheet.row(key)
    is_group = kind_of(sheet, moved) == "begin" and not is_grid(sheet, moved)
    return is_group or is_grid(sheet, parent)


def is_grid(sheet: Sheet, row: Row) -> bool:
    return TABLE_LIST in sheet.value(row, "appearance").lower().split()


def last_inside(sheet: Sheet, group: str) -> str:
    """Return the last row in a group that is not in another group within it."""
    span = span_of(sheet, group)
    last, place = group, span.start + 1
    while place < span.end:
        last = sheet.rows[place].key
        place = span_of(sheet, last).end + 1
    return last


def move_past(book: DraftBook, key: str, group: str) -> None:
    """Move a row below a row or a whole group."""
    sheet = book.sheet("survey")
    keys = keys_of(sheet, span_of(sheet, key))
    book.move(sheet, keys, sheet.rows[span_of(sheet, group).end].key)


def delete_if_empty(book: DraftBook, group: str) -> None:
    sheet = book.sheet("survey")
    span = span_of(sheet, group)
    if span.end == span.start + 1:
        book.delete(sheet, keys_of(sheet, span))


def place_below(book: DraftBook, key: str, after: str, *, into: bool = False) -> None:
    """Move a row below another one, or to the start of a group; "" is the top.

    Raises CommandRefused.
    """
    sheet = book.sheet("survey")
    is_group = bool(after) and kind_of(sheet, sheet.row(after)) == "begin"
    if not is_group or into:
        move_rows(book, key, after=after)
        return
    around = groups_around(sheet, key)
    if after in keys_of(sheet, span_of(sheet, key)):
        raise CommandRefused(_("Choose a place outside of what you move."))
    move_past(book, key, after)
    for row in reversed(around):
        if row.key != after:
            delete_if_empty(book, row.key)
