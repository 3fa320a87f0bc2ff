"""Choose the sheets of a workbook that have people, and read their rows.

Which of several sheets is meant is never guessed: those of other grades would be
missing from the roster, and those of last year in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from survey.instrument.spreadsheets.xlsx_rows import (
    MOST_PLACES,
    SheetRemarks,
    SheetRow,
    XlsxWorkbook,
)
from survey.people.rosters.columns import RosterColumns
from survey.people.rosters.text_reader import DELIMITERS, hides_rows
from survey.people.rosters.unreadable import RosterUnreadable

MOST_COLUMNS = 300
# The header may be below a title and a few blank lines.
HEADER_WITHIN = 20
# Named instead of a sheet: all that have people, one after another.
ALL_SHEETS = "*"
# A sheet has fewer rows, so that each row has a number of its own.
NUMBERS_OF_A_SHEET = 2_000_000
MOST_NAMED = 10

# Returns the header among the first rows of a file, if one of them is one.
HeaderFinder = Callable[[Iterable[tuple[int, Sequence[str]]]], RosterColumns | None]


class SheetsUnclear(RosterUnreadable):
    """A person has to say which of the sheets are read."""

    def __init__(self, message: str, sheets: Sequence[str]) -> None:
        super().__init__(message)
        self.sheets = sheets


def choose_sheets(
    workbook: XlsxWorkbook, find_header: HeaderFinder, chosen: str | None
) -> dict[str, RosterColumns]:
    """Return the headers of the sheets to read, by name; none if no sheet has one.

    `chosen` is the name of a sheet, ALL_SHEETS, "" for the only one, or None where
    nobody can choose. A sheet with less than half of the columns of another one is a
    list of something else. Raises SheetsUnclear.
    """
    named = (chosen or "").strip().casefold()
    sheets = [sheet for sheet in workbook.sheets if not sheet.startswith("_")]
    if named not in ("", ALL_SHEETS):
        sheets = [name for name in workbook.sheets if name.strip().casefold() == named]
        if not sheets:
            raise SheetsUnclear(
                _(
                    "The workbook has no visible sheet '%(sheet)s'. Its sheets are:"
                    " %(sheets)s."
                )
                % {"sheet": named[:80], "sheets": _quoted(workbook.sheets)},
                workbook.sheets,
            )
    tables: dict[str, RosterColumns] = {}
    with_people: dict[str, RosterColumns] = {}
    for sheet in sheets:
        start = list(islice(workbook.rows(sheet, MOST_COLUMNS), HEADER_WITHIN + 1))
        if columns := find_header(start[:HEADER_WITHIN]):
            tables[sheet] = columns
            if start[-1][0] > columns.row:
                with_people[sheet] = columns
    tables = with_people or dict(islice(tables.items(), 1))
    most = max((len(columns.fields) for columns in tables.values()), default=0)
    tables = {
        sheet: columns
        for sheet, columns in tables.items()
        if 2 * len(columns.fields) >= most
    }
    if len(tables) > 1 and named != ALL_SHEETS:
        raise _several_sheets(list(tables), may_choose=chosen is not None)
    return tables


def _quoted(sheets: Sequence[str]) -> str:
    shown = ", ".join(f"'{sheet}'" for sheet in sheets[:MOST_NAMED])
    return f"{shown}, …" if len(sheets) > MOST_NAMED else shown


def _several_sheets(sheets: Sequence[str], *, may_choose: bool) -> SheetsUnclear:
    advice = (
        _("Choose the sheet to read, or * for all of them.")
        if may_choose
        else _("Upload a file in which one sheet has all rows.")
    )
    several = _("Several sheets of the workbook have a table: %(sheets)s.") % {
        "sheets": _quoted(sheets)
    }
    return SheetsUnclear(f"{several} {advice}", sheets)


def check_same_columns(tables: Mapping[str, RosterColumns]) -> None:
    """Refuse sheets that cannot be read one after another. Raises SheetsUnclear."""
    (first, columns), *later = tables.items()
    wanted = sorted(filter(None, columns.header))
    for sheet, its in later:
        headers = sorted(filter(None, its.header))
        is_doubled = len(set(headers)) < len(headers)
        if headers != wanted or (is_doubled and its.header != columns.header):
            different = sorted(set(headers) ^ set(wanted))
            raise SheetsUnclear(
                _(
                    "The sheets '%(first)s' and '%(sheet)s' have different columns"
                    " (%(columns)s). Give them the same columns, or read one sheet"
                    " after the other as a file that only adds and changes people."
                )
                % {
                    "first": first,
                    "sheet": sheet,
                    "columns": ", ".join(different)[:200],
                },
                list(tables),
            )


def describe_sheets(workbook: XlsxWorkbook, read: Mapping[str, RosterColumns]) -> str:
    """Say which sheets are read, from which row, and which are not."""
    sheets = (
        _("%(sheet)s (headers in row %(row)s)") % {"sheet": sheet, "row": columns.row}
        for sheet, columns in read.items()
    )
    texts = [
        ngettext("Excel, sheet %(sheets)s", "Excel, sheets %(sheets)s", len(read))
        % {"sheets": ", ".join(sheets)}
    ]
    if unread := [sheet for sheet in workbook.sheets if sheet not in read]:
        texts.append(_("not read: %(sheets)s") % {"sheets": _quoted(unread)})
    if workbook.hidden:
        texts.append(
            _("hidden and not read: %(sheets)s") % {"sheets": _quoted(workbook.hidden)}
        )
    return "; ".join(texts)


def rows_of_sheets(
    workbook: XlsxWorkbook, tables: Mapping[str, RosterColumns], remarks: list[str]
) -> Iterator[SheetRow]:
    """Yield the rows after the headers, in the columns of the first sheet.

    Rows of later sheets are numbered on. At the end, `remarks` say what was noticed.
    Raises RosterUnreadable and UnsafeWorkbook.
    """
    texts: list[str] = []
    header = next(iter(tables.values())).header
    for index, (sheet, columns) in enumerate(tables.items()):
        added = index * NUMBERS_OF_A_SHEET
        if added:
            texts.append(
                _(
                    "Rows of the sheet '%(sheet)s' are numbered from %(first)s:"
                    " %(second)s is its row 2."
                )
                % {"sheet": sheet, "first": added + 1, "second": added + 2}
            )
        is_same = columns.header[: len(header)] == header
        order = [columns.header.index(text) if text else None for text in header]
        noticed = SheetRemarks(columns.row)
        for number, cells in workbook.rows(sheet, MOST_COLUMNS, noticed):
            if number <= columns.row:
                continue
            if "\n" in "".join(cells):
                _refuse_hidden_rows(sheet, number, cells, columns)
            if not is_same:
                cells = [
                    "" if i is None or i >= len(cells) else cells[i] for i in order
                ]
            yield number + added, cells
        texts += _remarks_of(noticed)
    remarks[:] = texts


def _refuse_hidden_rows(
    sheet: str, number: int, cells: Sequence[str], columns: RosterColumns
) -> None:
    """Refuse a cell with rows of the CSV file that the workbook was made from."""
    for delimiter in DELIMITERS:
        if hides_rows(cells, delimiter, len(columns.header)):
            index = next(i for i, cell in enumerate(cells) if "\n" in cell)
            raise RosterUnreadable(
                _(
                    "Sheet '%(sheet)s', row %(row)s, column '%(column)s': other rows"
                    " stand inside this cell, as after a quotation mark that was"
                    " never closed. Move them out of the cell, or export the roster"
                    " again."
                )
                % {
                    "sheet": sheet,
                    "row": number,
                    "column": columns.header[index]
                    if index < len(columns.header)
                    else "",
                }
            )


def _remarks_of(noticed: SheetRemarks) -> list[str]:
    texts = []
    if hidden := noticed.hidden_rows:
        texts.append(
            ngettext(
                "%(rows)s row was read that is hidden in the sheet.",
                "%(rows)s rows were read that are hidden in the sheet.",
                hidden,
            )
            % {"rows": f"{hidden:,}"}
        )
    if formulas := noticed.formulas:
        texts.append(
            ngettext(
                "%(cells)s cell has a formula whose value is not in the file, and was"
                " read as blank (%(first)s). Open the file in a spreadsheet program,"
                " save it, and upload it again.",
                "%(cells)s cells have a formula whose value is not in the file, and"
                " were read as blank (the first is %(first)s). Open the file in a"
                " spreadsheet program, save it, and upload it again.",
                formulas,
            )
            % {"cells": f"{formulas:,}", "first": noticed.first_formula}
        )
    if merged := noticed.merged:
        places = ", ".join(merged[:MOST_PLACES])
        texts.append(
            _(
                "Merged cells: only the first cell of each was read (%(places)s)."
                " Split them, and repeat the value in each row that it is for."
            )
            % {"places": f"{places}, …" if len(merged) > MOST_PLACES else places}
        )
    return texts
