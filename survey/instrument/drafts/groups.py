"""Put questions and pages into groups: pages, headings, grids and sections."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from survey.instrument.drafts.commands import (
    BEGIN,
    END,
    FIELD_LIST,
    TABLE_LIST,
    CommandRefused,
    groups_around,
    is_page,
    keys_of,
    kind_of,
    names_in,
    span_of,
)
from survey.instrument.drafts.moves import is_grid, siblings_of
from survey.instrument.drafts.names import free_name, made_name
from survey.instrument.drafts.workbook import DraftBook, Row, Sheet


def wrap_rows(
    book: DraftBook, keys: Sequence[str], name: str, appearance: str = ""
) -> str:
    """Put rows that follow each other into a group, and return the group's key."""
    survey = book.sheet("survey")
    start = min(survey.index(key) for key in keys)
    end = max(span_of(survey, key).end for key in keys)
    cells = {
        survey.column("type"): BEGIN,
        **made_name(survey, free_name(name, names_in(book))),
    }
    if appearance:
        cells[survey.column("appearance")] = appearance
    before = survey.rows[start - 1].key if start else ""
    last = survey.rows[end].key
    book.insert(survey, last, [{survey.column("type"): END}])
    [key] = book.insert(survey, before, [cells])
    return key


def wrap_page(book: DraftBook, keys: Sequence[str]) -> str:
    """Put questions outside of groups, which the reader gathers, into a page."""
    return wrap_rows(book, keys, "page", FIELD_LIST)


def wrap_in_heading(book: DraftBook, key: str) -> str:
    """Put a question of a page below a heading. Raises CommandRefused."""
    if not can_have_heading(book.sheet("survey"), key):
        raise CommandRefused(_("Only a question of a page can get a heading."))
    return wrap_rows(book, [key], "heading")


def can_have_heading(sheet: Sheet, key: str) -> bool:
    around = groups_around(sheet, key)
    is_group = kind_of(sheet, sheet.row(key)) == "begin"
    return bool(around) and acts_as_page(sheet, around[-1]) and not is_group


def wrap_in_grid(book: DraftBook, key: str) -> str:
    """Make a question with one choice the first statement of a grid.

    Raises CommandRefused.
    """
    if not can_be_grid(book.sheet("survey"), key):
        raise CommandRefused(_("Only a question with one choice can become a grid."))
    return wrap_rows(book, [key], "grid", TABLE_LIST)


def can_be_grid(sheet: Sheet, key: str) -> bool:
    around = groups_around(sheet, key)
    is_free = not around or acts_as_page(sheet, around[-1])
    return is_free and kind_of(sheet, sheet.row(key)) == "select_one"


def begin_section(book: DraftBook, page: str) -> str:
    """Put a page and those after it into a section, up to the next section.

    Within a group, only a field-list is a page. Raises CommandRefused for a page that
    is in a section.
    """
    sheet = book.sheet("survey")
    if not can_begin_section(sheet, page):
        raise CommandRefused(_("This page is in a section already."))
    siblings, _parent = siblings_of(sheet, page)
    place = [row.key for row in siblings].index(page)
    keys = []
    for row in siblings[place:]:
        if is_section(sheet, row):
            break
        keys.append(row.key)
        if acts_as_page(sheet, row) and not is_page(sheet, row):
            looks = f"{sheet.value(row, 'appearance')} {FIELD_LIST}".strip()
            book.set_cells(sheet, row.key, {sheet.column("appearance"): looks})
    return wrap_rows(book, keys, "section")


def can_begin_section(sheet: Sheet, page: str) -> bool:
    return acts_as_page(sheet, sheet.row(page)) and not groups_around(sheet, page)


def acts_as_page(sheet: Sheet, row: Row) -> bool:
    """Return whether a group is a page, as those that are in no other group are."""
    if is_page(sheet, row):
        return True
    is_group = kind_of(sheet, row) == "begin" and not is_grid(sheet, row)
    return is_group and not is_section(sheet, row) and not groups_around(sheet, row.key)


def is_section(sheet: Sheet, row: Row) -> bool:
    """Return whether a row begins a group around pages."""
    if kind_of(sheet, row) != "begin" or is_page(sheet, row):
        return False
    span = span_of(sheet, row.key)
    return any(is_page(sheet, inner) for inner in sheet.rows[span.start : span.end])


def unwrap(book: DraftBook, key: str) -> str:
    """Remove a section or heading, and return the first row that was in it.

    Raises CommandRefused for other rows.
    """
    sheet = book.sheet("survey")
    row = sheet.row(key)
    around = groups_around(sheet, key)
    is_heading = bool(around) and acts_as_page(sheet, around[-1])
    is_heading = is_heading and not is_grid(sheet, row)
    is_group = kind_of(sheet, row) == "begin"
    if not is_group or not (is_heading or is_section(sheet, row)):
        raise CommandRefused(_("This can’t be done."))
    begin, *inner, end = keys_of(sheet, span_of(sheet, key))
    book.delete(sheet, [begin, end])
    return inner[0] if inner else ""
