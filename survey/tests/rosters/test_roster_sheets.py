"""Workbooks with several sheets, hidden rows and cells that say nothing."""

from __future__ import annotations

import io
import re
from datetime import date

import openpyxl
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError

from survey.console.rosters import forms
from survey.models import Identity, RosterUpload
from survey.people.rosters import roster_sheets, text_reader
from survey.people.rosters.file_reader import ColumnsUnclear, open_table
from survey.people.rosters.layouts import KnownPlace
from survey.people.rosters.roster_sheets import SheetsUnclear
from survey.people.rosters.unreadable import RosterUnreadable, TooLarge
from survey.tests.rosters.roster_console import errors_of
from survey.tests.rosters.test_import_roster_command import command
from survey.tests.spreadsheets.hostile_files import SHEET, with_part
from survey.tests.workbooks import workbook

LINCOLN = KnownPlace("riverside", "Riverside", "lincoln", "Lincoln")
HEADER = ["Student ID", "First name", "Grade", "Class"]
MAYA = ["1", "Maya", "7", "7A"]
ALI = ["2", "Ali", "8", "8A"]
NOOR = ["3", "Noor", "8", "8B"]
BY_GRADE = {"Grade 7": [HEADER, MAYA], "Grade 8": [HEADER, ALI, NOOR]}


def read(content: bytes, sheet: str = ""):
    with open_table(io.BytesIO(content), None, LINCOLN, sheet=sheet) as table:
        rows = list(table.rows)
        # Remarks are those of one reading.
        assert list(table.rows) == rows
        return table, rows


def people(content: bytes, sheet: str = "") -> list[str]:
    return [cells[1] for _number, cells in read(content, sheet)[1]]


def saved(book: openpyxl.Workbook) -> bytes:
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def book_of(sheets):
    return openpyxl.load_workbook(io.BytesIO(workbook(sheets)))


def test_several_sheets_with_people_are_named_and_one_is_to_be_chosen():
    content = workbook(BY_GRADE)
    with pytest.raises(SheetsUnclear, match="'Grade 7', 'Grade 8'. Choose the sheet"):
        read(content)
    assert people(content, "Grade 8") == ["Ali", "Noor"]
    assert people(content, " grade 7 ") == ["Maya"]
    table, _ = read(content, "Grade 8")
    assert (
        table.description
        == "Excel, sheet Grade 8 (headers in row 1); not read: 'Grade 7'"
    )


def test_all_sheets_are_read_one_after_another():
    moved = [HEADER[::-1], ALI[::-1], NOOR[::-1]]
    below_a_title = [["Lincoln"], [], *moved]
    table, rows = read(workbook({"Grade 7": [HEADER, MAYA], "8": below_a_title}), "*")
    assert [cells for _number, cells in rows] == [MAYA, ALI, NOOR]
    assert [number for number, _cells in rows] == [2, 2_000_004, 2_000_005]
    assert table.description == (
        "Excel, sheets Grade 7 (headers in row 1), 8 (headers in row 3)"
    )
    assert table.remarks == [
        "Rows of the sheet '8' are numbered from 2000001: 2000002 is its row 2."
    ]


def test_sheets_with_different_columns_are_not_read_together():
    content = workbook(BY_GRADE | {"Grade 9": [[*HEADER, "Lunch"], [*NOOR, "free"]]})
    with pytest.raises(SheetsUnclear, match="'Grade 7' and 'Grade 9'.*(Lunch)"):
        read(content, "*")


@pytest.mark.parametrize(
    "more",
    [
        {"Codes": [["Class", "Room"], ["7A", "12"]]},
        {"Empty": [HEADER]},
        {"Read me": [["Please fill in"]]},
        {"_old": [HEADER, ALI]},
        {"Chart": []},
    ],
)
def test_lists_and_empty_sheets_beside_the_people_are_not_read(more):
    for sheets in (
        {"People": [HEADER, MAYA]} | more,
        more | {"People": [HEADER, MAYA]},
    ):
        table, rows = read(workbook(sheets))
        assert [cells for _number, cells in rows] == [MAYA]
        assert (
            table.description
            == f"Excel, sheet People (headers in row 1); not read: '{[*more][0]}'"
        )


def test_hidden_sheets_are_named():
    book = book_of(BY_GRADE)
    book["Grade 8"].sheet_state = "veryHidden"
    table, rows = read(saved(book))
    assert [cells for _number, cells in rows] == [MAYA]
    assert table.description.endswith("hidden and not read: 'Grade 8'")
    book["Grade 7"]["A1"] = book["Grade 7"]["C1"] = None
    book["Grade 7"]["B1"] = book["Grade 7"]["D1"] = None
    with pytest.raises(
        RosterUnreadable, match=r"are not read \(Grade 8\). Show or rename"
    ):
        read(saved(book))


def test_rows_that_stand_in_one_cell_each_are_to_be_split():
    """A file with semicolons, opened in Excel where commas separate cells."""
    rows = [[";".join(cells)] for cells in (HEADER, MAYA, ALI)]
    with pytest.raises(
        RosterUnreadable, match="Each row stands in one cell. Split the column"
    ):
        read(workbook({"People": rows}))
    with pytest.raises(RosterUnreadable) as refused:
        read(workbook({"People": [["Maya"], ["Ali"]]}))
    assert "one cell" not in str(refused.value)


def test_a_chosen_sheet_may_have_headers_that_nobody_knows():
    sheets = {"Uno": [["Kennung", "Vorname", "Stufe"], ["1", "Maya", "7"]]}
    content = workbook(
        sheets | {"Dos": [["Code", "Name", "Nombre"], ["2", "Ali", "8"]]}
    )
    with pytest.raises(ColumnsUnclear) as unclear:
        read(content, "Uno")
    assert [*unclear.value.suggestion.samples] == ["Kennung", "Vorname", "Stufe"]


def test_a_sheet_that_is_not_there_is_named_with_the_others():
    with pytest.raises(SheetsUnclear, match="no visible sheet 'grade 9'.*'Grade 7', '"):
        read(workbook(BY_GRADE), "Grade 9")


def test_columns_after_the_300th_are_refused_as_in_csv():
    """Status was cut off, and a withdrawn person invited."""
    header = [*HEADER, *(f"X{number}" for number in range(340)), "Status"]
    row = [*MAYA, *"x" * 340, "Withdrawn"]
    with pytest.raises(TooLarge, match="more than 300 columns") as as_text:
        read(f"{','.join(header)}\n{','.join(row)}".encode())
    with pytest.raises(TooLarge) as as_workbook:
        read(workbook({"People": [header, row]}))
    assert str(as_text.value) == str(as_workbook.value)
    # A cell far beyond the header makes its row too long.
    _, [(_, cells)] = read(workbook({"People": [HEADER, [*MAYA, *[None] * 400, "x"]]}))
    assert cells[:4] == MAYA and cells[4:][-1] == "x"
    assert len(cells) == roster_sheets.MOST_COLUMNS + 1


def test_hidden_rows_are_read_and_counted():
    book = book_of({"People": [["Lincoln"], HEADER, MAYA, ALI, NOOR]})
    for row in (1, 3, 5):
        book["People"].row_dimensions[row].hidden = True
    table, rows = read(saved(book))
    assert len(rows) == 3
    assert table.remarks == ["2 rows were read that are hidden in the sheet."]


def test_formulas_without_a_value_are_noted():
    book = book_of({"People": [["=1"], HEADER, MAYA, ALI]})
    book["People"]["D4"] = '="8"&"A"'
    table, rows = read(saved(book))
    assert rows[1] == (4, ["2", "Ali", "8", ""])
    assert table.remarks[0].startswith("1 cell has a formula whose value is not in the")
    assert "read as blank (D4). Open the file in a spreadsheet" in table.remarks[0]
    empty = b'<c r="D4" t="str"><f>"8"&amp;"A"</f><v></v></c>'
    computed = with_part(
        saved(book),
        SHEET,
        lambda part: re.sub(rb'<c r="D4".*?</c>', lambda _: empty, part),
    )
    assert read(computed)[0].remarks == []
    book["People"]["B3"] = "=1"
    assert "2 cells have a formula" in read(saved(book))[0].remarks[0]


def test_merged_cells_are_noted_below_the_title():
    book = book_of({"People": [["Lincoln"], HEADER, MAYA, ALI, NOOR]})
    book["People"].merge_cells("A1:D1")
    assert read(saved(book))[0].remarks == []
    book["People"].merge_cells("D4:D5")
    [note] = read(saved(book))[0].remarks
    assert note.startswith("Merged cells: only the first cell of each was read (D4:D5)")


def test_rows_of_a_csv_file_within_a_cell_are_refused(monkeypatch):
    """A CSV with an unpaired quotation mark, saved as a workbook."""
    swallowed = ["4", "Max,7,7A\n5,Zoe,7,7A\n6,Bob", "7", "7A"]
    content = workbook({"People": [HEADER, MAYA, swallowed]})
    with pytest.raises(RosterUnreadable) as refused:
        read(content)
    assert str(refused.value).startswith(
        "Sheet 'People', row 3, column 'First name': other rows stand inside this cell"
    )
    monkeypatch.setattr(roster_sheets, "hides_rows", lambda *some: False)
    assert len(people(content)) == 2


def test_a_cell_of_several_lines_is_read():
    address = ["4", "Max\n12 Main St, Springfield, IL", "7", "7A"]
    assert read(workbook({"People": [HEADER, address]}))[1] == [(2, address)]
    assert not text_reader.hides_rows(address, ",", 4)


def test_classes_and_ids_that_excel_made_dates_are_rejected(
    administration, lincoln, tmp_path
):
    book = book_of({"People": [HEADER, MAYA, ALI, NOOR]})
    book["People"]["D3"] = date(2026, 10, 1)
    book["People"]["D3"].number_format = "d-mmm"
    book["People"]["A4"] = date(2026, 10, 2)
    text = f"{','.join(HEADER)}\n1,Maya,7,7A\n2,Ali,8,1-Oct\nOct-32,Noor,8,8B"
    for name, content in {"r.xlsx": saved(book), "r.csv": text.encode()}.items():
        path = tmp_path / name
        path.write_bytes(content)
        out = command(path, "--school", "lincoln", "--partial")
        assert "2 rejected" in out
        assert "row 3, Class: " in out and "row 4, Student ID: " in out
        assert out.count("was made a date by Excel; format the column as text") == 2


# The console and the command --------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "grades.xlsx"
    path.write_bytes(workbook(BY_GRADE))
    return path


def test_the_command_asks_for_the_sheet(administration, lincoln, path):
    place = ("--school", "lincoln")
    with pytest.raises(CommandError, match="Several sheets.*'Grade 8'.*--sheet"):
        command(path, *place)
    assert "1 added" in command(path, *place, "--sheet", "Grade 7")
    assert "2 added" in command(path, *place, "--sheet", "*")


@pytest.mark.django_db
@pytest.mark.parametrize("opened_at_once", [forms.OPENED_AT_ONCE, 0])
def test_the_console_asks_for_the_sheet(
    administration, staff, console_of, path, monkeypatch, opened_at_once
):
    monkeypatch.setattr(forms, "OPENED_AT_ONCE", opened_at_once)
    chen = console_of(staff.chen)
    address = f"/console/administrations/{administration.pk}/roster/"

    def upload(**fields):
        file = SimpleUploadedFile("grades.xlsx", path.read_bytes())
        return chen.post(address, file=file, complete_for="changes", **fields)

    assert 'type="hidden" name="sheet"' in chen.get(address).content.decode()
    response = upload()
    if opened_at_once:
        [error] = errors_of(response)["sheet"]
        assert "'Grade 7', 'Grade 8'" in error and "choose it once more" in error
        assert '<option value="Grade 8">' in response.content.decode()
        assert not RosterUpload.objects.exists()
    else:
        # A worker has opened it; the way back leads to a form with the field.
        refused = RosterUpload.objects.get()
        assert refused.state == "refused" and "'Grade 8'" in refused.message
        page = chen.get(f"/console/rosters/{refused.pk}/").content.decode()
        assert f'href="{address}?sheet="' in page
        form = chen.get(f"{address}?sheet=").content.decode()
        assert 'type="text" name="sheet"' in form
    upload(sheet="*")
    checked = RosterUpload.objects.latest("pk")
    assert checked.state == "checked", checked.message
    assert checked.report["added"] == 3
    chen.post(f"/console/rosters/{checked.pk}/confirm/", seen=0)
    assert Identity.objects.count() == 3
