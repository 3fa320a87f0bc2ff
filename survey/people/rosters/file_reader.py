"""Read a roster file as rows of text: CSV in any encoding, .xlsx and .xls.

Everything is streamed and bounded: a file of any size or malice gives rows or
a RosterUnreadable with the reason, never another exception.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import BinaryIO

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.instrument.spreadsheets.file_kinds import reason_not_a_table
from survey.instrument.spreadsheets.old_excel import converted_to_xlsx, is_old_excel
from survey.instrument.spreadsheets.workbook_guard import UnsafeWorkbook
from survey.instrument.spreadsheets.xlsx_rows import SheetRow, XlsxWorkbook
from survey.people.rosters.columns import (
    REQUIRED,
    RosterColumns,
    best_header,
    columns_of,
    likely_header,
)
from survey.people.rosters.layouts import (
    DistrictTest,
    KnownPlace,
    RosterLayout,
    Suggestion,
    missing_fields,
    questions_text,
    suggest_layout,
)
from survey.people.rosters.list_headers import ListHeader
from survey.people.rosters.oneroster.archive import is_archive
from survey.people.rosters.oneroster.table import open_archive
from survey.people.rosters.presets import all_presets, preset_headers
from survey.people.rosters.roster_sheets import (
    HEADER_WITHIN,
    MOST_COLUMNS,
    HeaderFinder,
    check_same_columns,
    choose_sheets,
    describe_sheets,
    rows_of_sheets,
)
from survey.people.rosters.table import RosterTable
from survey.people.rosters.text_reader import (
    DELIMITERS,
    ENCODING_NAMES,
    SPLIT_FILE,
    encoding_of,
    text_rows,
)
from survey.people.rosters.unreadable import RosterUnreadable, TooLarge

LARGEST_FILE = 2 * 2**30
PEOPLE = {
    "student": gettext_noop("students"),
    "teacher": gettext_noop("teachers"),
    "parent": gettext_noop("parents"),
}
# Rows from which the meaning of columns is suggested.
SAMPLE_ROWS = 500


class NotATable(RosterUnreadable):
    pass


class ColumnsUnclear(RosterUnreadable):
    """A person has to decide what some columns mean, before the file can be read."""

    def __init__(self, suggestion: Suggestion) -> None:
        super().__init__(questions_text(suggestion))
        self.suggestion = suggestion


# A later one counts where the earlier ones find no header in the whole file.
HEADER_FINDERS: Sequence[HeaderFinder] = (
    partial(best_header, also_known=preset_headers()),
    likely_header,
)


# Rosters ------------------------------------------------------------------------


@contextmanager
def open_table(
    file: BinaryIO,
    layout: RosterLayout | None = None,
    known: KnownPlace | None = None,
    *,
    role: str = "",
    preset: str = "",
    sheet: str = "",
) -> Iterator[RosterTable]:
    """Open a roster with the columns of a layout; see the two functions below."""
    with open_roster_file(file, known, sheet=sheet) as table:
        yield with_columns(table, layout, role=role, preset=preset)


@contextmanager
def open_roster_file(
    file: BinaryIO, known: KnownPlace | None = None, *, sheet: str = ""
) -> Iterator[RosterTable]:
    """Open a roster and find its header; `with_columns` says what that means.

    `sheet` is the one that a person chose of a workbook; see `open_any_table`.
    """
    known = known or KnownPlace()
    opened: AbstractContextManager[RosterTable]
    if is_archive(file):
        opened = open_archive(file, known)
    else:
        opened = open_any_table(file, HEADER_FINDERS, REQUIRED.values(), sheet=sheet)
    with opened as table:
        yield replace(table, known=known)


def with_columns(
    table: RosterTable,
    layout: RosterLayout | None = None,
    *,
    role: str = "",
    preset: str = "",
) -> RosterTable:
    """Return a roster with the columns of a layout, a preset or its headers.

    Raises ColumnsUnclear, with a suggestion, if a person has to decide.
    """
    if layout is None:
        suggestion = suggest_columns(table, role=role, preset=preset)
        if suggestion.questions:
            raise ColumnsUnclear(suggestion)
        layout = suggestion.layout
    columns = columns_of(table.columns.header, table.columns.row, layout.fields)
    answered = [*columns.fields, *(["district"] if layout.has_no_district else [])]
    if missing := missing_fields(answered, table.known):
        raise _missing_columns((REQUIRED[name] for name in missing), columns)
    return replace(table, columns=columns, layout=layout)


def suggest_columns(
    table: RosterTable,
    *,
    role: str = "",
    preset: str = "",
    schools_tell_district: DistrictTest | None = None,
) -> Suggestion:
    """Suggest a layout for a roster, with the questions that a person has to decide."""
    samples = [cells for _, cells in islice(table.rows, SAMPLE_ROWS)]
    suggestion = suggest_layout(
        table.columns.header,
        samples,
        known=table.known,
        role=role,
        preset=preset,
        schools_tell_district=schools_tell_district,
    )
    used = all_presets().get(suggestion.layout.preset)
    if used and used.role and role and used.role != role:
        raise RosterUnreadable(
            _(
                "This is a file of %(people)s (%(title)s), but the survey round is"
                " for %(audience)s."
            )
            % {
                "people": _(PEOPLE[used.role]),
                "title": used.title,
                "audience": _(PEOPLE[role]),
            }
        )
    return suggestion


# All files ----------------------------------------------------------------------


def open_list(
    file: BinaryIO, header: ListHeader
) -> AbstractContextManager[RosterTable]:
    """Open a list of schools, counts or people who opt out."""
    return open_any_table(file, [header], header.required)


@contextmanager
def open_any_table(
    file: BinaryIO,
    finders: Sequence[HeaderFinder],
    required: Iterable[str],
    *,
    sheet: str | None = None,
) -> Iterator[RosterTable]:
    """Open a table with the columns that the first of `finders` finds.

    `required` are the columns that are named where none is found. `sheet`: see
    `choose_sheets`.

    The file must be seekable; it is not closed. Its name is ignored: exports
    called .csv are workbooks, and the other way round.
    """
    if file.seek(0, io.SEEK_END) > LARGEST_FILE:
        too_large = _("The file is larger than 2 GB.")
        raise TooLarge(f"{too_large} {_(SPLIT_FILE)}")
    if reason := reason_not_a_table(file):
        raise NotATable(reason)
    file.seek(0)
    start = file.read(8)
    if start.startswith(b"PK\x03\x04"):
        yield _open_workbook(file, finders, required, sheet)
    elif is_old_excel(start):
        try:
            with converted_to_xlsx(file) as workbook:
                yield _open_workbook(workbook, finders, required, sheet)
        except UnsafeWorkbook as error:
            raise NotATable(str(error)) from error
    else:
        with _open_text(file, finders, required) as table:
            yield table


# Text -----------------------------------------------------------------------


@contextmanager
def _open_text(
    file: BinaryIO, finders: Sequence[HeaderFinder], required: Iterable[str]
) -> Iterator[RosterTable]:
    encoding = encoding_of(file)
    file.seek(0)
    text = io.TextIOWrapper(file, encoding, newline="")
    try:
        sample = text.read(65536)
        # The delimiter under which the first rows name the most columns.
        headers: dict[str, RosterColumns] = {}
        for find_header in finders:
            for delimiter in DELIMITERS:
                rows = text_rows(io.StringIO(sample, newline=""), delimiter)
                columns = find_header(islice(enumerate(rows, 1), HEADER_WITHIN))
                if columns:
                    headers[delimiter] = columns
            if headers:
                break
        else:
            raise _no_header(sample.splitlines()[:1], required)
        delimiter = max(headers, key=lambda delimiter: len(headers[delimiter].fields))
        columns = headers[delimiter]
        _check_columns(columns)

        def read(_layout: RosterLayout) -> Iterator[SheetRow]:
            text.seek(0)
            numbered = enumerate(text_rows(text, delimiter, columns.header), 1)
            return _people_rows(islice(numbered, columns.row, None), columns)

        yield RosterTable(
            columns,
            read,
            _("%(encoding)s, separated by %(delimiter)s (headers in row %(row)s)")
            % {
                "row": columns.row,
                "encoding": ENCODING_NAMES[encoding],
                "delimiter": _(DELIMITERS[delimiter]),
            },
        )
    finally:
        text.detach()


# Workbooks --------------------------------------------------------------------


def _open_workbook(
    file: BinaryIO,
    finders: Sequence[HeaderFinder],
    required: Iterable[str],
    sheet: str | None,
) -> RosterTable:
    """Open the sheet with people, or those that were chosen."""
    try:
        workbook = XlsxWorkbook(file)
        for find_header in finders:
            if tables := choose_sheets(workbook, find_header, sheet):
                break
        else:
            rows = (workbook.rows(name, MOST_COLUMNS) for name in workbook.sheets)
            first = next((cells for start in rows for _row, cells in start), [])
            advice = _advice_on_sheets(workbook, first)
            raise RosterUnreadable(f"{_no_header(first, required)} {advice}".strip())
    except UnsafeWorkbook as error:
        raise NotATable(str(error)) from error
    for columns in tables.values():
        _check_columns(columns)
    check_same_columns(tables)
    columns = next(iter(tables.values()))
    remarks: list[str] = []

    def read(_layout: RosterLayout) -> Iterator[SheetRow]:
        try:
            yield from _people_rows(rows_of_sheets(workbook, tables, remarks), columns)
        except UnsafeWorkbook as error:
            raise NotATable(str(error)) from error

    return RosterTable(
        columns, read, describe_sheets(workbook, tables), remarks=remarks
    )


# Both ---------------------------------------------------------------------------


def _people_rows(
    rows: Iterable[SheetRow], columns: RosterColumns
) -> Iterator[SheetRow]:
    """Skip blank rows, and fill the others up to the header's width."""
    width = len(columns.header)
    for number, cells in rows:
        if not any(map(str.strip, cells)):
            continue
        if len(cells) < width:
            cells.extend([""] * (width - len(cells)))
        yield number, cells


def _check_columns(columns: RosterColumns) -> None:
    if len(columns.header) > MOST_COLUMNS:
        raise TooLarge(
            _(
                "The file has more than %(most_columns)s columns. Delete those that"
                " are not needed, and upload it again."
            )
            % {"most_columns": MOST_COLUMNS}
        )
    if columns.missing:
        raise _missing_columns(columns.missing, columns)


def _missing_columns(
    missing: Iterable[str], columns: RosterColumns
) -> RosterUnreadable:
    shown = ", ".join(text for text in columns.header if text)
    return RosterUnreadable(
        _("No column for: %(missing)s. Row %(row)s contains: %(found)s.")
        % {
            "missing": ", ".join(map(_, missing)),
            "row": columns.row,
            "found": shown[:500],
        }
    )


def _advice_on_sheets(workbook: XlsxWorkbook, first: Sequence[str]) -> str:
    """Say why a workbook may have no row of column headers, or ""."""
    unread = [name for name in workbook.sheets if name.startswith("_")]
    if sheets := [*workbook.hidden, *unread]:
        return _(
            "Hidden sheets, and those whose names begin with _, are not read"
            " (%(sheets)s). Show or rename the sheet with the people, and save the"
            " workbook."
        ) % {"sheets": ", ".join(sheets)[:200]}
    if len(first) == 1 and any(first[0].count(sign) > 1 for sign in DELIMITERS):
        return _(
            "Each row stands in one cell. Split the column in Excel (Data, Text to"
            " Columns), or upload the CSV file that the workbook was made from."
        )
    return ""


def _no_header(first: Sequence[str], required: Iterable[str]) -> RosterUnreadable:
    shown = ", ".join(" ".join(cell[:200].split())[:40] for cell in first[:40])
    if not shown:
        return RosterUnreadable(
            _("The file has no rows. Export it again, or choose another file.")
        )
    wanted = ", ".join(map(_, required))
    return RosterUnreadable(
        _(
            "None of the first %(header_within)s rows names the columns"
            " (%(wanted)s, …). The file begins: %(shown)s. Write the name of each"
            " column above it."
        )
        % {
            "header_within": HEADER_WITHIN,
            "wanted": wanted,
            "shown": shown[:200],
        }
    )
