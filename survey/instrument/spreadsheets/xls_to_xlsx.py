"""Convert an .xls file to .xlsx: python -I xls_to_xlsx.py SOURCE TARGET

Runs in a process of its own, with limits on memory, time and disk space,
since no reader of this old format withstands hostile files: in xlrd, a loop
of sectors never ends and defined names can double a text thirty times; in
calamine, each cell holds a copy of its text. It imports nothing of the
project, so that it starts in a fifth of a second.

Exit code 2 means that standard output holds a sentence for the author.
"""

from __future__ import annotations

import io
import resource
import sys

import xlrd
import xlsxwriter
from xlrd.sheet import Sheet

MEMORY = 1024 * 2**20
CPU_SECONDS = 60
LARGEST_TARGET = 1024 * 2**20
REFUSED = 2


class Refused(Exception):
    """Tell the author why the file is not converted."""


def main(source: str, target: str) -> None:
    for kind, limit in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, LARGEST_TARGET),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    try:
        convert(source, target)
    except Refused as refusal:
        sys.stdout.write(str(refusal))
        sys.exit(REFUSED)


def convert(source: str, target: str) -> None:
    try:
        book = xlrd.open_workbook(
            source,
            logfile=io.StringIO(),
            # The formats of numbers: 000000 keeps an ID's leading zeros.
            formatting_info=True,
            # One sheet in memory at a time, and rows no longer than needed.
            on_demand=True,
            ragged_rows=True,
        )
    except xlrd.XLRDError as error:
        if "encrypted" in str(error):
            raise Refused(
                "The file is protected by a password. Save it without a password."
            ) from None
        raise
    options = {"constant_memory": True, "date_1904": bool(book.datemode)}
    with xlsxwriter.Workbook(target, options) as copy:
        formats: dict[str, xlsxwriter.format.Format] = {}
        for number in range(book.nsheets):
            sheet = book.sheet_by_index(number)
            page = copy.add_worksheet(sheet.name)
            if sheet.visibility:
                page.hide()
            else:
                # Otherwise xlsxwriter shows the first sheet, even a hidden one.
                page.activate()
            for first_row, row, first_column, column in sheet.merged_cells:
                page.merge.append([first_row, first_column, row - 1, column - 1])
            copy_cells(book, sheet, copy, page, formats)
            book.unload_sheet(number)


def copy_cells(
    book: xlrd.Book,
    sheet: Sheet,
    copy: xlsxwriter.Workbook,
    page: xlsxwriter.worksheet.Worksheet,
    formats: dict[str, xlsxwriter.format.Format],
) -> None:
    for row in range(sheet.nrows):
        for column, cell in enumerate(sheet.row(row)):
            if cell.ctype == xlrd.XL_CELL_TEXT:
                if page.write_string(row, column, cell.value) < 0:
                    raise Refused(
                        f"The sheet {sheet.name} has a text in row {row + 1} that is"
                        " too long for Excel."
                    )
            elif cell.ctype in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
                style = book.xf_list[cell.xf_index].format_key
                code = book.format_map[style].format_str
                if code not in formats:
                    formats[code] = copy.add_format({"num_format": code})
                page.write_number(row, column, cell.value, formats[code])
            elif cell.ctype == xlrd.XL_CELL_BOOLEAN:
                page.write_boolean(row, column, bool(cell.value))
            elif cell.ctype == xlrd.XL_CELL_ERROR:
                error = xlrd.error_text_from_code.get(cell.value, "#VALUE!")
                page.write_formula(row, column, "=NA()", None, error)


if __name__ == "__main__":
    main(*sys.argv[1:])
