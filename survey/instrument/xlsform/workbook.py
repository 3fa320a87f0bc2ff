"""Read the sheets of a survey as text, with the row and column of each cell.

openpyxl reads the parts through its streaming parser, so that each cell's
place is the one written in the file: neither a million formatted but empty
rows nor a gap of a million costs anything.
"""

from __future__ import annotations

import datetime
import io
import re
import warnings
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypedDict
from xml.etree.ElementTree import Element

from django.utils.translation import gettext as _
from openpyxl import load_workbook
from openpyxl.styles.numbers import BUILTIN_FORMATS, BUILTIN_FORMATS_MAX_SIZE
from openpyxl.utils import get_column_letter
from openpyxl.worksheet._read_only import ReadOnlyWorksheet
from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

from survey.instrument.spreadsheets.file_kinds import reason_not_a_table
from survey.instrument.spreadsheets.old_excel import converted_to_xlsx, is_old_excel
from survey.instrument.spreadsheets.workbook_guard import (
    MIB,
    SURVEY,
    UPLOAD_WORKBOOK,
    UnsafeWorkbook,
    unpack_survey,
)
from survey.instrument.xlsform.problems import FileRefused, Findings

SHEETS = ("settings", "survey", "choices", "measures")
MAX_ROWS = 10_000
MAX_COLUMNS = 300
# Excel's own limit; a longer text was never typed into a cell.
MAX_TEXT = 32_767
# Characters of all cells of a sheet. Thousands of cells may refer to one text, so
# a file of 100 KB could ask for hundreds of megabytes.
MAX_CHARACTERS = 10_000_000

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# How Excel writes a character that XML cannot contain: _x000D_ is a return.
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


@dataclass(frozen=True)
class UnreadableCell:
    """A cell below the headers whose value cannot be used, and why."""

    row: int
    column: int
    reason: str
    text: str


@dataclass
class SurveySheet:
    """`headers` by column number; `rows` by row number, without blank ones.

    `formats` are the number formats of cells that show a number or date otherwise
    than `rows` do, by row and column. `unreadable` cells are in none of them.
    """

    name: str
    headers: dict[int, str] = field(default_factory=dict)
    rows: dict[int, dict[int, str]] = field(default_factory=dict)
    formats: dict[tuple[int, int], str] = field(default_factory=dict)
    unreadable: list[UnreadableCell] = field(default_factory=list)
    characters: int = 0


class ParsedCell(TypedDict):
    """A cell as openpyxl's parser returns it."""

    row: int
    column: int
    value: object
    data_type: str
    style_id: int


def read_workbook(
    content: bytes, findings: Findings, *, keep_notes: bool = False
) -> dict[str, SurveySheet]:
    """Read the sheets of an XLSForm, .xlsx or .xls, by their names in lower case.

    With `keep_notes` also other sheets, by their titles. Raises FileRefused if the
    file as a whole cannot be used.
    """
    try:
        if len(content) > SURVEY.file:
            raise UnsafeWorkbook(
                _("The file is larger than %(file)s MB.") % {"file": SURVEY.file // MIB}
            )
        if reason := reason_not_a_table(io.BytesIO(content), UPLOAD_WORKBOOK):
            raise FileRefused(reason)
        if is_old_excel(content):
            with converted_to_xlsx(io.BytesIO(content)) as converted:
                content = converted.read(SURVEY.file + 1)
        unpacked = unpack_survey(content)
    except UnsafeWorkbook as error:
        raise FileRefused(str(error)) from error
    try:
        # openpyxl warns of what it leaves out (charts, validations), none of
        # which an XLSForm needs.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _read_sheets(unpacked, findings, keep_notes)
    except FileRefused:
        raise
    # A parser of other people's files can fail in any way; each is the same
    # to the author, and none may become a traceback.
    except Exception as error:
        cause = error.__cause__ or error
        raise FileRefused(
            _(
                "The workbook is damaged (%(name)s). Open it in a spreadsheet"
                " program and save it again."
            )
            % {"name": type(cause).__name__}
        ) from error


def _read_sheets(
    unpacked: bytes, findings: Findings, keep_notes: bool
) -> dict[str, SurveySheet]:
    workbook = load_workbook(
        io.BytesIO(unpacked), read_only=True, data_only=True, keep_links=False
    )
    sheets: dict[str, SurveySheet] = {}
    for worksheet in workbook.worksheets:
        title = str(worksheet.title)
        name = title.strip().lower()
        if keep_notes and name not in SHEETS:
            sheets[title] = _read_sheet(title, worksheet, Findings())
            continue
        if name not in SHEETS:
            # As in pyxform, these are the author's own notes.
            if not name.startswith("_"):
                reason = _("not a sheet of an XLSForm: ignored")
                findings.warn(title, None, "", reason)
            _warn_of_formulas(title, worksheet, findings)
        elif name in sheets:
            raise FileRefused(
                _("There are two sheets named %(name)s.") % {"name": name}
            )
        else:
            sheets[name] = _read_sheet(name, worksheet, findings)
    workbook.close()
    return sheets


def _warn_of_formulas(
    title: str, worksheet: ReadOnlyWorksheet, findings: Findings
) -> None:
    """Name the cells of notes that a draft would keep, and that have no value."""
    in_headers = Findings()
    try:
        sheet = _read_sheet(title, worksheet, in_headers)
    except FileRefused:
        return
    for problem in in_headers.problems:
        findings.warn(title, problem.row, problem.column, problem.reason)
    for cell in sheet.unreadable:
        if not cell.text:
            column = get_column_letter(cell.column)
            findings.warn(title, cell.row, column, cell.reason)


class _CellParser(WorkSheetParser):
    """Distinguish a formula that was never computed from an empty cell."""

    def parse_cell(self, element: Element) -> ParsedCell:
        cell: ParsedCell = super().parse_cell(element)
        # A text without characters is a computed value: ="".
        is_text = element.get("t") == "str"
        if (
            cell["value"] is None
            and not is_text
            and element.find(FORMULA_TAG) is not None
        ):
            cell["data_type"] = "f"
        return cell


def _read_sheet(
    name: str, worksheet: ReadOnlyWorksheet, findings: Findings
) -> SurveySheet:
    sheet = SurveySheet(name)
    book = worksheet.parent
    custom = dict(enumerate(book._number_formats, start=BUILTIN_FORMATS_MAX_SIZE))
    codes = {**custom, **BUILTIN_FORMATS}
    formats = {
        style_id: codes.get(style.numFmtId, "")
        for style_id, style in enumerate(book._cell_styles)
    }
    with worksheet._get_source() as source:
        parser = _CellParser(
            source,
            worksheet._shared_strings,
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        for _number, cells in parser.parse():
            for cell in cells:
                _read_cell(sheet, cell, formats, findings)
    merged = parser.merged_cells
    ranges = [str(cell.ref) for cell in merged.mergeCell] if merged else []
    if ranges:
        findings.warn(
            sheet.name,
            None,
            "",
            _("merged cells: only the first cell of each is read"),
            ", ".join(ranges[:10]),
        )
    return sheet


def _read_cell(
    sheet: SurveySheet, cell: ParsedCell, formats: dict[int, str], findings: Findings
) -> None:
    row, column, value = int(cell["row"]), int(cell["column"]), cell["value"]
    if value is None and cell["data_type"] != "f":
        return
    if row > MAX_ROWS or column > MAX_COLUMNS:
        raise FileRefused(
            _(
                "The sheet %(name)s has content in %(column)s%(row)s, beyond"
                " %(max_rows)s rows or %(max_columns)s columns."
            )
            % {
                "name": sheet.name,
                "column": get_column_letter(column),
                "row": row,
                "max_rows": f"{MAX_ROWS:,}",
                "max_columns": MAX_COLUMNS,
            }
        )
    text = cell_text(value)
    sheet.characters += len(text)
    if sheet.characters > MAX_CHARACTERS:
        raise FileRefused(
            _("The sheet %(name)s has more than %(max_characters)s characters.")
            % {"name": sheet.name, "max_characters": f"{MAX_CHARACTERS:,}"}
        )
    problem = ""
    if cell["data_type"] == "f":
        text = str(value or "")
        problem = _(
            "a formula whose value is not in the file: open it in a"
            " spreadsheet program and save it, or paste the value"
        )
    elif cell["data_type"] == "e":
        problem = _("the cell contains a spreadsheet error")
    elif len(text) > MAX_TEXT:
        problem = _("longer than %(max_text)s characters") % {
            "max_text": f"{MAX_TEXT:,}"
        }
    elif CONTROL.search(text):
        problem = _("contains a control character")
    if problem and row > 1:
        # Refused once it is known whether anything reads the column.
        sheet.unreadable.append(UnreadableCell(row, column, problem, text))
    elif problem:
        findings.refuse(sheet.name, row, get_column_letter(column), problem, text)
    elif text and row == 1:
        sheet.headers[column] = text
    elif text:
        sheet.rows.setdefault(row, {})[column] = text
        code = formats.get(cell["style_id"], "") if cell["data_type"] in "nd" else ""
        if code not in ("", "General", "@"):
            sheet.formats[row, column] = code


def cell_text(value: object) -> str:
    """Return a value as its author reads it: 3, TRUE, 2027-03-01."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        # repr, and not the double's hundred digits: 0.1 is what was typed.
        return format(Decimal(repr(value)), "f")
    if isinstance(value, datetime.datetime) and value.time() == datetime.time.min:
        return value.date().isoformat()
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    text = ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), str(value))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\N{NO-BREAK SPACE}", " ").strip()
