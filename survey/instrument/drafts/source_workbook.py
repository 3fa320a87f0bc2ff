"""Write a changed draft into the workbook that it was uploaded as.

What nobody touched stays as its author made it: numbers and dates, styles, comments,
widths, hidden sheets, validation lists and filters. openpyxl leaves out charts and
macros.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
import zipfile
from collections import defaultdict
from copy import copy

from django.utils.translation import gettext as _
from openpyxl import Workbook, load_workbook
from openpyxl.cell import Cell, MergedCell
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.worksheet.worksheet import Worksheet

from survey.instrument.drafts.exporting import (
    escaped,
    sheet_title,
    workbook_of,
    write_plain_sheet,
)
from survey.instrument.drafts.store import book_of_workbook
from survey.instrument.drafts.workbook import FIRST_ROW, MARKS, DraftBook, Row, Sheet
from survey.instrument.spreadsheets.old_excel import is_old_excel
from survey.instrument.spreadsheets.workbook_guard import unpack_survey
from survey.instrument.xlsform.problems import FileRefused, Problem
from survey.instrument.xlsform.workbook import SHEETS

log = logging.getLogger(__name__)

FORMULA = "f"
# Parts of a file that openpyxl does not write; drawings of comments are others.
NOT_KEPT = re.compile(r"xl/(charts/|drawings/drawing|vbaProject|activeX/)")


def parts_not_kept(content: bytes) -> list[Problem]:
    """Say what of an uploaded workbook is lost when it is written after a change."""
    if is_old_excel(content[:8]):
        reason = _(
            "After a change here it is downloaded as an .xlsx file, without colors and"
            " widths: keep your file."
        )
        return [Problem("", None, "", reason)]
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            names = file.namelist()
    except zipfile.BadZipFile:
        return []
    if not any(map(NOT_KEPT.match, names)):
        return []
    reason = _(
        "Its charts, pictures and macros are not in the workbook that you download"
        " after a change here: keep your file."
    )
    return [Problem("", None, "", reason)]


def workbook_like(book: DraftBook, source: bytes) -> bytes:
    """Return the draft as the workbook `source` with the cells that have changed.

    A workbook of Excel 97, or one that would not read as the draft does, is written
    anew, as `workbook_of` does.
    """
    if not is_old_excel(source[:8]):
        try:
            content = _changed(book, source)
            if content and _texts(book_of_workbook(content)) == _texts(book):
                return content
        # openpyxl fails in many ways where it writes what others have made.
        except (
            *(AttributeError, KeyError, IndexError, TypeError, ValueError),
            *(FileRefused, InvalidFileException),
        ) as error:
            log.warning("a workbook is written anew: %s", type(error).__name__)
        else:
            log.warning("a workbook is written anew: its texts would differ")
    return workbook_of(book)


def _texts(book: DraftBook) -> dict[str, tuple[dict[int, str], list[dict[int, str]]]]:
    """Return what the sheets that are read say, without blank rows."""
    texts = {}
    for name, sheet in book.sheets.items():
        rows = [
            {n: text for n, text in row.cells.items() if n not in MARKS and text}
            for row in sheet.rows
        ]
        if name in SHEETS and (sheet.headers or any(rows)):
            texts[name] = (sheet.headers, [row for row in rows if row])
    return texts


def _changed(book: DraftBook, source: bytes) -> bytes | None:
    before = book_of_workbook(source)
    unpacked = unpack_survey(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = _open(unpacked, values=False)
        values = _open(unpacked, values=True)
    if len(before.sheets) != len(file.worksheets):
        return None
    places = dict(zip(before.sheets, file.worksheets, strict=True))
    for name, sheet in book.sheets.items():
        if name not in places:
            if sheet.columns or sheet.rows:
                write_plain_sheet(file.create_sheet(sheet_title(sheet)), sheet)
            continue
        worksheet = places[name]
        if name in SHEETS:
            _replace_formulas(worksheet, values[worksheet.title])
        _write_changes(worksheet, sheet, before.sheets[name])
    result = io.BytesIO()
    file.save(result)
    return result.getvalue()


def _open(unpacked: bytes, *, values: bool) -> Workbook:
    return load_workbook(
        io.BytesIO(unpacked), data_only=values, rich_text=not values, keep_links=False
    )


def _replace_formulas(worksheet: Worksheet, values: Worksheet) -> None:
    """Write the computed values, which a file without Excel's own would not have."""
    for cells in worksheet.iter_rows():
        for cell in cells:
            if cell.data_type == FORMULA:
                cell.value = values.cell(cell.row, cell.column).value


def _write_changes(worksheet: Worksheet, sheet: Sheet, before: Sheet) -> None:
    for number, header in enumerate(sheet.columns, 1):
        known = before.columns[number - 1] if number <= len(before.columns) else ""
        if header != known:
            cell = worksheet.cell(1, number)
            if number > 1 and not known:
                cell._style = copy(worksheet.cell(1, number - 1)._style)
            _write(worksheet, 1, number, header)
    rows = {row.key: (n, row) for n, row in enumerate(before.rows, FIRST_ROW)}
    numbers = [rows[row.key][0] if row.key in rows else 0 for row in sheet.rows]
    if numbers != [*range(FIRST_ROW, FIRST_ROW + len(before.rows))]:
        _arrange(worksheet, numbers)
    for number, row in enumerate(sheet.rows, FIRST_ROW):
        known_row = rows[row.key][1] if row.key in rows else Row(row.key)
        for column in sorted({*row.cells, *known_row.cells} - MARKS):
            text = row.cells.get(column, "")
            if text != known_row.cells.get(column, ""):
                _write(worksheet, number, column, text)


def _arrange(worksheet: Worksheet, numbers: list[int]) -> None:
    """Put the rows with these numbers below the headers; 0 is a new, empty row."""
    _unmerge(worksheet)
    by_row: dict[int, list[Cell]] = defaultdict(list)
    for (number, _column), cell in [*worksheet._cells.items()]:
        if number >= FIRST_ROW:
            by_row[number].append(cell)
            del worksheet._cells[number, cell.column]
    looks = {n: worksheet.row_dimensions[n] for n in [*worksheet.row_dimensions]}
    for number in [n for n in looks if n >= FIRST_ROW]:
        del worksheet.row_dimensions[number]
    for number, earlier in enumerate(numbers, FIRST_ROW):
        for cell in by_row[earlier] if earlier else ():
            cell.row = number
            worksheet._cells[number, cell.column] = cell
            if cell.hyperlink:
                cell.hyperlink.ref = cell.coordinate
        if earlier in looks:
            look = copy(looks[earlier])
            look.index = number
            worksheet.row_dimensions[number] = look


def _unmerge(worksheet: Worksheet) -> None:
    for area in [*worksheet.merged_cells.ranges]:
        if area.max_row >= FIRST_ROW:
            worksheet.unmerge_cells(area.coord)


def _write(worksheet: Worksheet, row: int, column: int, text: str) -> None:
    cell = worksheet.cell(row, column)
    if isinstance(cell, MergedCell):
        _unmerge(worksheet)
        cell = worksheet.cell(row, column)
    cell.value = escaped(text) if text else None
    if text:
        # No text runs as a formula, and no number becomes one.
        cell.data_type = "s"
        cell.number_format = "@"
