"""An empty roster with the right headers, as CSV and as XLSX."""

from __future__ import annotations

import csv
import io

from openpyxl import Workbook
from openpyxl.styles import Font

from accounts.csv_injection import escape_formula
from accounts.models import School
from survey.models import Administration, Role
from survey.rosters.field_parsers import EXAMPLE_ID

_ID = {Role.STUDENT: "Student ID", Role.TEACHER: "Staff ID", Role.PARENT: "Parent ID"}
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def rows_of_template(
    administration: Administration, school: School | None
) -> list[list[str]]:
    """The header, and an example that is refused if it is left in."""
    role = Role(administration.role)
    columns = {
        "District": school.district.code if school else "riverside",
        "School": school.code if school else "lincoln",
        _ID[role]: EXAMPLE_ID,
        "Given name": "Maya",
        "Family name": "Lopez",
    }
    if role == Role.STUDENT:
        columns |= {"Grade": "7", "Class": "7B", "Birth date": "2014-03-04"}
    columns |= {"E-mail": "maya@example.org", "Language": "en"}
    return [list(columns), list(columns.values())]


def csv_template(rows: list[list[str]]) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file).writerows(map(escape_formula, row) for row in rows)
    # The mark tells Excel that it is UTF-8.
    return file.getvalue().encode("utf-8-sig")


def xlsx_template(rows: list[list[str]]) -> bytes:
    book = Workbook()
    sheet = book.active
    assert sheet is not None  # noqa: S101
    sheet.title = "Roster"
    for row in rows:
        sheet.append(row)
    for cell in sheet[1]:
        cell.font = Font(bold=True)
        column = sheet.column_dimensions[cell.column_letter]
        column.width = 16
        # As text, so that Excel keeps the zeros of an ID: of the whole column,
        # for a cell each would be half a second of work.
        column.number_format = "@"
    for cell in sheet[2]:
        cell.number_format = "@"
    sheet.freeze_panes = "A2"
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()
