"""Roster files as school systems, Excel and attackers write them."""

from __future__ import annotations

import csv
import io
import tracemalloc
from datetime import date, datetime
from itertools import product

import openpyxl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from survey.people.rosters.file_reader import NotATable, open_table
from survey.people.rosters.unreadable import RosterUnreadable, TooLarge

HEADER = "district,school,student ID,given name"


SIGNS = [(",", "commas"), (";", "semicolons"), ("\t", "tabs"), ("|", "bars")]


def read(content: bytes):
    with open_table(io.BytesIO(content)) as table:
        return table, list(table.rows)


def rows_of(content: bytes):
    return read(content)[1]


# Text ---------------------------------------------------------------------------


def test_rows_have_the_numbers_that_excel_shows():
    content = (
        f'{HEADER}\r\n1,2,3,"Ana\r\nMaria"\r\n\r\n , ,\r\n'
        '1,2,4,"Al ""Bo"" Ortiz, Jr"\r\n'
    )
    assert rows_of(content.encode()) == [
        (2, ["1", "2", "3", "Ana\r\nMaria"]),
        (5, ["1", "2", "4", 'Al "Bo" Ortiz, Jr']),
    ]


@pytest.mark.parametrize(
    ("encoding", "description"),
    [
        ("utf-8", "UTF-8"),
        ("utf-8-sig", "UTF-8"),
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("utf-32", "UTF-32"),
        ("cp1252", "Windows-1252"),
    ],
)
def test_every_encoding_and_separator_gives_the_same_people(encoding, description):
    for newline, (sign, name) in product(["\n", "\r\n", "\r"], SIGNS):
        content = newline.join([HEADER, "1,2,3,Zoë Peña"]).replace(",", sign)
        table, rows = read(content.encode(encoding))
        assert rows == [(2, ["1", "2", "3", "Zoë Peña"])]
        assert table.description == (
            f"{description}, separated by {name} (headers in row 1)"
        )


def test_the_last_character_of_a_dos_file_is_no_person():
    assert rows_of(f"{HEADER}\r\n1,2,3,Maya\r\n\x1a".encode()) == [
        (2, ["1", "2", "3", "Maya"])
    ]


def test_header_below_a_title_is_found():
    rows = rows_of(f"Riverside Unified\n\nsep=,\n{HEADER}\n1,2,3,Maya".encode())
    assert rows == [(5, ["1", "2", "3", "Maya"])]


def test_short_rows_are_filled_and_long_rows_are_kept():
    rows = rows_of(f"{HEADER}\n1,2,3\n1,2,4,Maya,x".encode())
    assert [cells for _, cells in rows] == [
        ["1", "2", "3", ""],
        ["1", "2", "4", "Maya", "x"],
    ]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", RosterUnreadable, "has no rows"),
        (b"Maya,Lopez\nNoor,Haddad\n", RosterUnreadable, "begins: Maya,Lopez"),
        (b"<html><body>Not found", NotATable, "This is a web page"),
        (b"school,grade\n1,2\n", RosterUnreadable, "district, student or staff ID"),
        (b"school,grade\n1,2\n", RosterUnreadable, "The columns are: school, grade"),
        (HEADER.encode() + b"\n1,2,3,A\x00B\n", RosterUnreadable, "Line 2"),
        (HEADER.encode() + b"\n\x81\xff\n", RosterUnreadable, "CSV UTF-8"),
        (
            b"\xff\xfe" + HEADER.encode("utf-16-le") + b"\x00\xd8",
            RosterUnreadable,
            "begins as UTF-16",
        ),
        (HEADER.encode() + b"\n1,2,3," + b"x" * 200_000, TooLarge, "Row 2"),
        (HEADER.encode() + b"\n" + b"x" * 600_000, TooLarge, "Row 2"),
        (HEADER.encode() + b'\n1,2,"3,Maya\n1,2,4,Noor\n', RosterUnreadable, "Row 2"),
        (("x,school" + "," * 400).encode(), TooLarge, "300 columns"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", NotATable, "save it as .xlsx"),
        (b"PK\x03\x04 and no more", NotATable, "damaged"),
    ],
)
def test_unreadable_file_is_refused_with_a_reason(content, error, message):
    with pytest.raises(error, match=message):
        read(content)


def test_row_of_endless_quoted_lines_is_refused():
    # Every line closes one quotation and opens the next, so that csv.reader
    # itself would collect all of them as one row.
    endless = b'"' + b'x\n","' * 400_000
    with pytest.raises(TooLarge, match="longer than"):
        read(HEADER.encode() + b"\n" + endless)


def test_memory_stays_flat_for_a_large_file():
    class Roster(io.RawIOBase):
        """A file of 8 MB that is made while it is read."""

        size, at = 8_000_000, 0
        line = b"1,2,3," + b"Maya " * 40 + b"\n"

        def readable(self):
            return True

        def seekable(self):
            return True

        def seek(self, offset, whence=0):
            self.at = offset + (self.size if whence == 2 else 0)
            return self.at

        def readinto(self, buffer):
            header = f"{HEADER}\n".encode()
            count = min(len(buffer), self.size - self.at)
            data = bytearray()
            if self.at < len(header):
                data += header[self.at :]
            start = max(self.at - len(header), 0) % len(self.line)
            data += self.line[start:]
            data += self.line * (count // len(self.line) + 1)
            buffer[:count] = data[:count]
            self.at += count
            return count

    tracemalloc.start()
    with open_table(io.BufferedReader(Roster())) as table:
        seen = sum(1 for _ in table.rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen > 35_000
    assert peak < 2 * 2**20


texts = st.one_of(
    st.binary(max_size=400),
    st.binary(max_size=200).map(lambda tail: HEADER.encode() + b"\n" + tail),
    st.binary(max_size=200).map(
        lambda tail: b"\xff\xfe" + HEADER.encode("utf-16-le") + tail
    ),
    st.text(alphabet='",;\t|\r\n\x00a1é=\u2028', max_size=200).map(
        lambda tail: f"{HEADER}\n{tail}".encode()
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=100).map(str.encode),
)


@given(texts)
@example(b"\xf4\x90\x80\x80")
@example(b"\xef\xbb\xbf\x81")
@settings(max_examples=400)
def test_any_bytes_give_rows_or_a_reason(content):
    try:
        rows = rows_of(content)
    except RosterUnreadable as error:
        assert str(error)
    else:
        assert all(len(cells) >= 3 and any(cells) for _, cells in rows)
        numbers = [number for number, _ in rows]
        assert numbers == sorted(set(numbers))


# Letters that were converted twice, such as Ã©, are refused.
written_cells = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00ÃÂâ"), max_size=20
)


@given(st.lists(written_cells, max_size=5))
def test_rows_written_by_csv_are_read_back(names):
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(HEADER.split(","))
    writer.writerows(["1", "2", "3", name] for name in names)
    assert [row for _, row in rows_of(file.getvalue().encode())] == [
        ["1", "2", "3", name] for name in names
    ]


# Workbooks ------------------------------------------------------------------------


def workbook(rows, **sheets):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for title, more in sheets.items():
        sheet = book.create_sheet(title, 0)
        for row in more:
            sheet.append(row)
    return book


def saved(book) -> bytes:
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


NAMES = HEADER.split(",")


def test_cells_of_a_workbook_are_read_as_excel_shows_them():
    header = [*NAMES, "birth date", "lunch"]
    book = workbook(
        [
            header,
            ["D1", 7, 12345.0, "Zoë", datetime(2014, 3, 4), True],
            [],
            ["D1", 7, 42],
        ]
    )
    book.active["C4"].number_format = "000000"
    table, rows = read(saved(book))
    assert rows == [
        (2, ["D1", "7", "12345", "Zoë", "2014-03-04", "TRUE"]),
        (4, ["D1", "7", "000042", "", "", ""]),
    ]
    assert table.description == "Excel, sheet Sheet (headers in row 1)"


def test_first_visible_sheet_with_a_header_is_read():
    book = workbook(
        [NAMES, ["D1", 7, 1, "Maya"]],
        Notes=[["Please read"]],
        _lists=[NAMES, ["D1", 7, 2, "Nobody"]],
        Hidden=[NAMES, ["D1", 7, 3, "Nobody"]],
    )
    book["Hidden"].sheet_state = "hidden"
    assert rows_of(saved(book)) == [(2, ["D1", "7", "1", "Maya"])]


def test_error_about_a_missing_header_quotes_the_first_row():
    with pytest.raises(RosterUnreadable, match="Please read"):
        read(saved(workbook([["Please read"]])))


values = st.one_of(
    st.none(),
    st.integers(-(10**14), 10**14),
    st.booleans(),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12),
    st.dates(date(1901, 1, 1), date(2090, 1, 1)),
    st.decimals(-1000, 1000, places=3).map(float),
)


@given(st.lists(st.lists(values, min_size=3, max_size=3), min_size=1, max_size=4))
@settings(max_examples=40)
def test_cells_are_the_same_as_openpyxl_reads(rows):
    content = saved(workbook([NAMES, *([*row, "x"] for row in rows)]))
    book = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
    expected = [
        [as_text(cell) for cell in row]
        for row in book.active.iter_rows(min_row=2, values_only=True)
    ]
    assert [cells for _, cells in rows_of(content)] == expected


def as_text(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value).removesuffix(" 00:00:00")
