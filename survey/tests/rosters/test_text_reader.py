"""Quotation marks and letters that would lose or garble people are refused."""

from __future__ import annotations

import csv
import io

import pytest
from django.core.management import CommandError
from hypothesis import given, settings
from hypothesis import strategies as st

from survey.models import Respondent
from survey.people.rosters import text_reader
from survey.people.rosters.file_reader import open_table
from survey.people.rosters.layouts import KnownPlace
from survey.people.rosters.unreadable import RosterUnreadable
from survey.tests.rosters.test_import_roster_command import command

LINCOLN = KnownPlace("riverside", "Riverside", "lincoln", "Lincoln")
HEADER = ["Student ID", "First name", "Last name", "Grade", "Address"]


def rows_of(content: bytes) -> list[list[str]]:
    with open_table(io.BytesIO(content), None, LINCOLN) as table:
        return [cells for _number, cells in table.rows]


def roster(*names: str, sign: str = ",", address: str = "") -> bytes:
    """Write one student for each given name, which is not quoted."""
    rows = [
        [str(number), name, "Lee", "7", address] for number, name in enumerate(names)
    ]
    return "\n".join(map(sign.join, [HEADER, *rows])).encode()


# Quotation marks ------------------------------------------------------------------

SWALLOWING = [
    roster('"Bob', "Ann", "Jo", '"Max', "Mia"),
    roster('"Bob', '"Max', "Mia"),
    roster('"Bob', "Ann", '"Al"', "Mia"),
    # The second mark closes the cell as if it were meant to.
    roster('"Bob', "Ann", "5'6\"", "Mia"),
    roster('"Bob', "5'6\"", "Mia"),
    roster('"Bob', "Ann", '"', "Mia"),
    # The end of the file.
    roster('"Bob', "Ann", "Mia"),
]


@pytest.mark.parametrize("content", SWALLOWING)
@pytest.mark.parametrize("sign", [b",", b"\t", b";", b"|"])
def test_a_quotation_mark_that_hides_rows_is_refused_by_row_and_column(content, sign):
    with pytest.raises(RosterUnreadable) as refused:
        rows_of(content.replace(b",", sign))
    assert str(refused.value) == (
        "Row 2, column 'First name': a quotation mark is never closed, so that rows"
        " after it would be read as part of this cell. Delete the quotation mark, or"
        " write two for one within a quoted text, and upload the file again."
    )


def test_a_mark_that_is_closed_in_an_earlier_column_is_refused():
    # What is left over after the header's columns is blank.
    for between in ("", "\n8,Jo,Lee,7,"):
        content = roster("Ann", address='"x') + f'{between}\n9,Al,Lee,7",'.encode()
        with pytest.raises(RosterUnreadable, match="Row 2, column 'Address'"):
            rows_of(content)


@pytest.mark.parametrize("content", SWALLOWING)
def test_without_the_checks_it_loses_people(content, monkeypatch):
    real = csv.reader
    monkeypatch.setattr(
        text_reader.csv,
        "reader",
        lambda *some, strict=False, **more: real(*some, **more),
    )
    monkeypatch.setattr(text_reader, "hides_rows", lambda *some: False)
    assert len(rows_of(content)) < content.count(b"\n")


def test_people_between_two_quotation_marks_are_not_withdrawn(
    administration, tmp_path, monkeypatch
):
    path = tmp_path / "roster.txt"
    header = "district,school,student ID,given name,grade"
    rows = [f"Riverside,Lincoln,{number},Maya,7" for number in range(6)]
    path.write_text("\n".join([header, *rows]))
    assert "6 added" in command(path)
    rows[0] = rows[0].replace("Maya", '"Bob')
    rows[4] = rows[4].replace("Maya", '"Max')
    path.write_text("\n".join([header, *rows]))
    complete = ("--complete-for", "schools")
    with pytest.raises(CommandError, match="Row 2, column 'given name': a quotation"):
        command(path, *complete)
    assert not Respondent.objects.exclude(withdrawn_at=None).exists()
    # Without the checks, they would be.
    real = csv.reader
    monkeypatch.setattr(
        text_reader.csv,
        "reader",
        lambda *some, strict=False, **more: real(*some, **more),
    )
    monkeypatch.setattr(text_reader, "hides_rows", lambda *some: False)
    with pytest.raises(CommandError, match="4 people would be withdrawn"):
        command(path, *complete)


@pytest.mark.parametrize(
    "address",
    [
        "12 Main St\nSpringfield, IL 62701",
        "12 Main St\nApt 5\nSpringfield,IL",
        "1, 2, 3\n4, 5, 6, 7, 8\n9",
        "12 Main St\r\nSpringfield\r\n",
        'The "Old" House,\nSpringfield',
    ],
)
@pytest.mark.parametrize("column", range(5))
def test_a_cell_of_several_lines_is_read(address, column):
    file = io.StringIO()
    row = ["1", "2", "3", "4", "5"]
    row[column] = address
    csv.writer(file).writerows([HEADER, row, list("abcde")])
    assert rows_of(file.getvalue().encode()) == [row, list("abcde")]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        # As databases write them.
        (r'"Robert \"Bob\""', 'Robert "Bob"'),
        (r'"Robert \"Bob\", Jr"', 'Robert "Bob", Jr'),
        (r'"Al \""', 'Al "'),
        # Not doubled, but only one reading is possible.
        ('"Robert "Bob""', 'Robert "Bob"'),
        ('"Robert "Bob" Lee"', 'Robert "Bob" Lee'),
        ('"Bob" ', "Bob"),
        # In a cell that is not quoted.
        ('6" pipe', '6" pipe'),
        ('Robert "Bob" Lee', 'Robert "Bob" Lee'),
        ("“Bob”", "“Bob”"),
        ('"C:\\"', "C:\\"),
    ],
)
def test_quotation_marks_within_a_cell_are_read(written, read):
    rows = rows_of(roster("Ann", written, "Mia"))
    assert [cells[1] for cells in rows] == ["Ann", read, "Mia"]
    assert [len(cells) for cells in rows] == [5, 5, 5]


def test_quotation_marks_that_leave_the_cells_unclear_are_refused():
    for name in ('"Robert "Bob", Jr"', '"Bob" Lee'):
        with pytest.raises(
            RosterUnreadable, match=r"^Row 3.*leave unclear where a cell"
        ):
            rows_of(roster("Ann", name, "Mia"))


def test_a_line_of_many_quotation_marks_is_refused_soon():
    # Looking for the end of each of these cells would take minutes.
    line = '"x,' * 100_000 + '"y"z'
    with pytest.raises(RosterUnreadable):
        rows_of(roster(line))


names = st.lists(
    st.sampled_from(["a", '"', ", ", "\\", "\n", " ", "é"]), max_size=8
).map("".join)


@given(st.lists(names, min_size=1, max_size=4))
@settings(max_examples=200)
def test_what_a_program_quotes_is_read_back(written):
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    rows = [["1", name, "3", "4", "5"] for name in written]
    writer.writerows([HEADER, *rows])
    assert rows_of(file.getvalue().encode()) == rows


# Letters ----------------------------------------------------------------------------


def lines(*texts: tuple[str, str]) -> bytes:
    """Write one student for each name, in the encoding beside it."""
    content = ",".join(HEADER).encode() + b"\n"
    for number, (name, encoding) in enumerate(texts):
        content += f"{number},{name},Lee,7,\n".encode(encoding)
    return content


ZOE = ("Zoë", "utf-8")
WRONG = ("José", "latin-1")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lines(ZOE, WRONG), "Line 3 has letters that are not UTF-8"),
        (lines(ZOE, ("Ann", "utf-8"), WRONG, ZOE), "Line 4 has letters that are not"),
        (lines(WRONG, ZOE, WRONG), "Line 3 has letters in UTF-8, and other lines"),
        (b"\xef\xbb\xbf" + lines(("Ann", "utf-8"), WRONG), "Line 3 has letters that"),
        (lines(ZOE, WRONG).replace(b"\n", b"\r"), "Line 3 has letters"),
        (lines(ZOE, WRONG).replace(b"\n", b"\r\n"), "Line 3 has letters"),
        (lines(("王小明", "utf-8"), ("Иван", "utf-8"), WRONG), "Line 4 has letters"),
    ],
)
def test_a_wrong_byte_is_refused_by_its_line(content, message):
    with pytest.raises(RosterUnreadable, match=message) as refused:
        rows_of(content)
    assert "save the file as 'CSV UTF-8'" in str(refused.value)


def test_without_the_check_a_wrong_byte_garbles_every_name(monkeypatch):
    monkeypatch.setattr(text_reader, "check_windows_1252", lambda *some, **more: None)
    assert [cells[1] for cells in rows_of(lines(ZOE, WRONG))] == ["ZoÃ«", "José"]


@pytest.mark.parametrize(
    "names",
    [
        ["José"],
        ["Zoë", "D’Arcy", "Smith–Jones", "“Bo”", "Ann™", "d´Angelo", "Paral·lel"],
        # By chance these capitals and signs are letters of UTF-8.
        ["JOSÉ’S", "Zoë"],
        ["ANDRÉ\xa0", "Zoë"],
        ["ŽIŽEK", "Šárka", "Zoë", "Ÿves"],
    ],
)
def test_all_of_windows_1252_is_read(names):
    content = lines(*((name, "cp1252") for name in names))
    assert [cells[1] for cells in rows_of(content)] == names


@pytest.mark.parametrize("encoding", ["mac_roman", "cp437", "cp850"])
@pytest.mark.parametrize("name", ["Muñoz", "José", "Sofía Muñoz"])
def test_letters_of_a_macintosh_or_dos_are_refused_by_their_line(name, encoding):
    with pytest.raises(RosterUnreadable, match="letters of line 3 are neither"):
        rows_of(lines(("Ann", "ascii"), (name, encoding)))


@pytest.mark.parametrize("name", ["José", "Peña", "D’Arcy", "Zoë", "Sofía"])
def test_letters_that_were_converted_twice_are_refused_by_their_line(name):
    garbled = name.encode().decode("cp1252", "replace")
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        content = lines(("Ann", "ascii")).decode() + f"1,{garbled},Lee,7,\n"
        with pytest.raises(RosterUnreadable, match="Line 3 has letters that were"):
            rows_of(content.encode(encoding))
    assert rows_of(lines(("SÃO Âli", "utf-8")))


def test_a_nul_character_after_a_wrong_byte_is_refused():
    with pytest.raises(RosterUnreadable, match="Line 3"):
        rows_of(lines(WRONG, ("A\0n", "ascii")))
