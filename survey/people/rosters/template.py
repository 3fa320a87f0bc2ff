"""Build the roster template: headers and one example row, as CSV and XLSX."""

from __future__ import annotations

import io

from openpyxl import Workbook
from openpyxl.styles import Font

from accounts.models import School
from survey.models import Administration, Role
from survey.people.rosters.field_parsers import EXAMPLE_ID

ID_HEADERS = {
    Role.STUDENT: "Student ID",
    Role.TEACHER: "Staff ID",
    Role.PARENT: "Parent ID",
}
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def template_rows(
    administration: Administration, school: School | None
) -> list[list[str]]:
    """Return the header and an example row, which is rejected if it is left in."""
    role = Role(administration.role)
    columns = {
        "District": school.district.code if school else "riverside",
        "School": school.code if school else "lincoln",
        ID_HEADERS[role]: EXAMPLE_ID,
        "Given name": "Maya",
        "Family name": "Lopez",
    }
    if role == Role.STUDENT:
        columns |= {"Grade": "7", "Class": "7B", "Birth date": "2014-03-04"}
    columns |= {"E-mail": "maya@example.org", "Language": "en"}
    return [list(columns), list(columns.values())]


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
        # As text, so that Excel keeps leading zeros of an ID. The whole column
        # at once: formatting single cells would take half a second.
        column.number_format = "@"
    for cell in sheet[2]:
        cell.number_format = "@"
    sheet.freeze_panes = "A2"
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()
