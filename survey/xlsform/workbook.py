"""Cells as text, with the row and column that the author sees.

openpyxl reads the parts, through its streaming parser, so that the place of
every cell is the one written in the file: neither a million formatted but
empty rows nor a gap of a million costs anything.
"""

from __future__ import annotations

import datetime
import io
import re
import warnings
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from openpyxl import load_workbook
from openpyxl.utils import get_column_letter
from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

from survey.spreadsheets.archive import FileRefused, safe_archive
from survey.xlsform.problems import Findings

SHEETS = ("settings", "survey", "choices")
MAX_ROWS = 10_000
MAX_COLUMNS = 300
# Excel's own limit; a longer text was never typed into a cell.
MAX_TEXT = 32_767

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# How Excel writes a character that XML cannot hold: _x000D_ is a return.
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


@dataclass
class Sheet:
    """`headers` by column number; `rows` by row number, blank ones left out."""

    name: str
    headers: dict[int, str] = field(default_factory=dict)
    rows: dict[int, dict[int, str]] = field(default_factory=dict)


def read_workbook(content: bytes, findings: Findings) -> dict[str, Sheet]:
    """The sheets of an XLSForm by their names in lower case.

    Raises FileRefused where the file as a whole is of no use.
    """
    archive = safe_archive(content)
    try:
        # openpyxl warns of what it leaves out (charts, validations), none of
        # which an XLSForm needs.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _read_sheets(archive, findings)
    except FileRefused:
        raise
    # A parser of other people's files can fail in any way; each is the same
    # to the author, and none may become a traceback.
    except Exception as error:
        cause = error.__cause__ or error
        raise FileRefused(
            f"The workbook is damaged ({type(cause).__name__}): open it in a"
            " spreadsheet program and save it again."
        ) from error


def _read_sheets(archive: bytes, findings: Findings) -> dict[str, Sheet]:
    workbook = load_workbook(
        io.BytesIO(archive), read_only=True, data_only=True, keep_links=False
    )
    sheets: dict[str, Sheet] = {}
    for worksheet in workbook.worksheets:
        title = str(worksheet.title)
        name = title.strip().lower()
        if name.startswith("_"):
            continue
        if name not in SHEETS:
            findings.warn(title, None, "", "not a sheet of a survey: ignored")
        elif name in sheets:
            raise FileRefused(f"There are two sheets named {name}.")
        else:
            sheets[name] = _read_sheet(name, worksheet, findings)
    workbook.close()
    return sheets


class _Cells(WorkSheetParser):
    """Tells a formula that was never computed from an empty cell."""

    def parse_cell(self, element: Any) -> dict[str, Any]:
        cell = super().parse_cell(element)
        if cell["value"] is None and element.find(FORMULA_TAG) is not None:
            cell["data_type"] = "f"
        return cell


def _read_sheet(name: str, worksheet: Any, findings: Findings) -> Sheet:
    sheet = Sheet(name)
    book = worksheet.parent
    with worksheet._get_source() as source:
        parser = _Cells(
            source,
            worksheet._shared_strings,
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        for _, cells in parser.parse():
            for cell in cells:
                _take(sheet, cell, findings)
    _warn_of_merged_cells(sheet, parser.merged_cells, findings)
    return sheet


def _take(sheet: Sheet, cell: dict[str, Any], findings: Findings) -> None:
    row, column = int(cell["row"]), int(cell["column"])
    if cell["value"] is None and cell["data_type"] != "f":
        return
    if row > MAX_ROWS or column > MAX_COLUMNS:
        raise FileRefused(
            f"The sheet {sheet.name} has content in {get_column_letter(column)}{row},"
            f" beyond {MAX_ROWS:,} rows or {MAX_COLUMNS} columns."
        )
    letter = sheet.headers.get(column) or get_column_letter(column)
    problem = _unreadable(cell)
    if problem:
        findings.refuse(sheet.name, row, letter, problem, str(cell["value"] or ""))
        return
    text = _as_text(cell["value"])
    if len(text) > MAX_TEXT:
        reason = f"longer than {MAX_TEXT:,} characters"
        findings.refuse(sheet.name, row, letter, reason, text)
    elif CONTROL.search(text):
        findings.refuse(sheet.name, row, letter, "contains a control character", text)
    elif text and row == 1:
        sheet.headers[column] = text
    elif text:
        sheet.rows.setdefault(row, {})[column] = text


def _unreadable(cell: dict[str, Any]) -> str:
    if cell["data_type"] == "f":
        return (
            "a formula whose value is not in the file: open it in a spreadsheet"
            " program and save it, or paste the value"
        )
    if cell["data_type"] == "e":
        return "the cell holds a spreadsheet error"
    return ""


def _as_text(value: object) -> str:
    """As the author reads it: 3.0 is 3, TRUE is TRUE, a date is 2027-03-01."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return _number_as_text(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time.min:
        return value.date().isoformat()
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    text = ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), str(value))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\N{NO-BREAK SPACE}", " ").strip()


def _number_as_text(value: int | float) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # repr, and not the double's hundred digits: 0.1 is what was typed.
    return format(Decimal(repr(value)), "f")


def _warn_of_merged_cells(sheet: Sheet, merged: Any, findings: Findings) -> None:
    ranges = [str(cell.ref) for cell in merged.mergeCell] if merged else []
    if ranges:
        findings.warn(
            sheet.name,
            None,
            "",
            "merged cells: only the first cell of each is read",
            ", ".join(ranges[:10]),
        )
