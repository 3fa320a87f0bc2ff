"""Roster files as schools' systems, Excel and malice write them."""

from __future__ import annotations

import csv
import io
import struct
import time
import tracemalloc
import zipfile
from datetime import date, datetime

import openpyxl
import pytest
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from survey.rosters import field_parsers, file_reader
from survey.rosters.columns import columns_of
from survey.rosters.field_parsers import InvalidCell
from survey.rosters.file_reader import (
    MissingColumns,
    NoHeader,
    NotATable,
    NulCharacters,
    RosterUnreadable,
    TooLarge,
    UnclosedQuote,
    UnknownEncoding,
    open_table,
)
from survey.spreadsheets import xlsx_rows
from survey.spreadsheets.safe_workbook import UnsafeWorkbook, check_workbook

pytestmark = pytest.mark.once

HEADER = "district,school,student ID,given name"
TODAY = date(2026, 11, 21)


SIGNS = [(",", "commas"), (";", "semicolons"), ("\t", "tabs"), ("|", "bars")]


def read(content: bytes):
    with open_table(io.BytesIO(content)) as table:
        return table, list(table.rows)


def rows_of(content: bytes):
    return read(content)[1]


# Text ---------------------------------------------------------------------------


def test_a_file_is_read_with_the_row_numbers_that_excel_shows():
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
@pytest.mark.parametrize(("sign", "name"), SIGNS)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_encoding_and_separator_gives_the_same_people(
    encoding, description, sign, name, newline
):
    content = newline.join([HEADER, "1,2,3,Zoë Peña"]).replace(",", sign)
    table, rows = read(content.encode(encoding))
    assert rows == [(2, ["1", "2", "3", "Zoë Peña"])]
    assert table.description == f"{description}, separated by {name}"


def test_the_header_may_stand_below_a_title():
    rows = rows_of(f"Riverside Unified\n\nsep=,\n{HEADER}\n1,2,3,Maya".encode())
    assert rows == [(5, ["1", "2", "3", "Maya"])]


def test_short_rows_are_filled_and_long_ones_kept():
    rows = rows_of(f"{HEADER}\n1,2,3\n1,2,4,Maya,x".encode())
    assert [cells for _, cells in rows] == [
        ["1", "2", "3", ""],
        ["1", "2", "4", "Maya", "x"],
    ]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", NoHeader, "nothing at all"),
        (b"Maya,Lopez\nNoor,Haddad\n", NoHeader, "begins: Maya,Lopez"),
        (b"<html><body>Not found", NoHeader, "begins: <html>"),
        (b"school,grade\n1,2\n", MissingColumns, "district, student or staff ID"),
        (b"school,grade\n1,2\n", MissingColumns, "Row 1 holds: school, grade"),
        (HEADER.encode() + b"\n1,2,3,A\x00B\n", NulCharacters, "Line 2"),
        (HEADER.encode() + b"\n\x81\xff\n", UnknownEncoding, "CSV UTF-8"),
        (
            b"\xff\xfe" + HEADER.encode("utf-16-le") + b"\x00\xd8",
            UnknownEncoding,
            "neither",
        ),
        (HEADER.encode() + b"\n1,2,3," + b"x" * 200_000, TooLarge, "Row 2"),
        (HEADER.encode() + b"\n" + b"x" * 600_000, TooLarge, "Row 2"),
        (HEADER.encode() + b'\n1,2,"3,Maya\n1,2,4,Noor\n', UnclosedQuote, "row 2"),
        (("x,school" + "," * 400).encode(), TooLarge, "300 columns"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", NotATable, "old Excel file"),
        (b"PK\x03\x04 and no more", NotATable, "damaged"),
    ],
)
def test_what_cannot_be_read_is_named(content, error, message):
    with pytest.raises(error, match=message):
        read(content)


def test_a_quote_that_is_never_closed_would_have_swallowed_people(monkeypatch):
    content = HEADER.encode() + b'\n1,2,"3,Maya\n1,2,4,Noor\n'
    real = file_reader._Lines.__init__

    def lenient(self, text, *, is_sample):
        real(self, text, is_sample=True)

    monkeypatch.setattr(file_reader._Lines, "__init__", lenient)
    assert rows_of(content) == [(2, ["1", "2", "3,Maya\n1,2,4,Noor\n", ""])]


def test_a_row_cannot_grow_beyond_all_measure():
    # Every line closes one quotation and opens the next, so that csv.reader
    # itself would collect all of them as one row.
    endless = b'"' + b'x\n","' * 400_000
    with pytest.raises(TooLarge, match="longer than"):
        read(HEADER.encode() + b"\n" + endless)


def test_memory_stays_flat():
    class Roster(io.RawIOBase):
        """20 MB that are nowhere."""

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
@settings(max_examples=400)
def test_any_bytes_give_rows_or_a_named_error(content):
    try:
        rows = rows_of(content)
    except RosterUnreadable as error:
        assert str(error)
    else:
        assert all(len(cells) >= 3 and any(cells) for _, cells in rows)
        numbers = [number for number, _ in rows]
        assert numbers == sorted(set(numbers))


written_cells = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20
)


@given(st.lists(written_cells, max_size=5))
def test_what_csv_writes_is_read_back(names):
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


def test_a_workbook_is_read_as_it_looks():
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
    assert table.description == "Excel, sheet Sheet"


def test_the_sheet_with_the_header_is_found():
    book = workbook(
        [NAMES, ["D1", 7, 1, "Maya"]],
        Notes=[["Please read"]],
        _lists=[NAMES, ["D1", 7, 2, "Nobody"]],
        Hidden=[NAMES, ["D1", 7, 3, "Nobody"]],
    )
    book["Hidden"].sheet_state = "hidden"
    assert rows_of(saved(book)) == [(2, ["D1", "7", "1", "Maya"])]


def test_a_workbook_without_a_header_says_what_was_found():
    with pytest.raises(NoHeader, match="Please read"):
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
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_cells_are_what_openpyxl_reads(rows):
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


def with_part(content: bytes, name: str, change) -> bytes:
    """The workbook with one part changed."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for part in old.infolist():
            data = old.read(part)
            new.writestr(part.filename, change(data) if part.filename == name else data)
    return file.getvalue()


SHEET = "xl/worksheets/sheet1.xml"
PLAIN = saved(workbook([NAMES, ["D1", 7, 1, "Maya"]]))


def test_prefixed_names_and_inline_texts_are_read():
    def rewritten(_: bytes) -> bytes:
        head = "".join(
            f'<x:c t="inlineStr"><x:is><x:t>{n}</x:t></x:is></x:c>' for n in NAMES
        )
        return (
            '<x:worksheet xmlns:x="urn:any">'
            f'<x:sheetData><x:row>{head}</x:row><x:row r="9">'
            '<x:c r="C9"><x:v>5</x:v></x:c>'
            '<x:c r="A9" t="str"><x:f>1+1</x:f><x:v>D_x0041_</x:v></x:c></x:row>'
            "</x:sheetData></x:worksheet>"
        ).encode()

    assert rows_of(with_part(PLAIN, SHEET, rewritten)) == [(9, ["DA", "", "5", ""])]


def with_texts(texts: str) -> bytes:
    """A workbook as Excel itself writes it: texts in a table of their own.

    The given name refers to the table's first text.
    """
    relation = (
        b'<Relationship Id="texts" Target="/xl/sharedStrings.xml"'
        b' Type="x/sharedStrings"/>'
    )
    content = with_part(
        PLAIN,
        "xl/_rels/workbook.xml.rels",
        lambda data: data.replace(b"</Relationships>", relation + b"</Relationships>"),
    )
    maya = b'<c r="D2" t="inlineStr"><is><t>Maya</t></is></c>'
    content = with_part(
        content, SHEET, lambda data: data.replace(maya, b'<c r="D2" t="s"><v>0</v></c>')
    )
    file = io.BytesIO(content)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", f"<sst>{texts}</sst>")
    return file.getvalue()


def test_texts_in_their_own_table_are_read():
    rich = (
        "<si><r><t>Ma</t></r><r><rPr/><t>ya_x0041_</t></r>"
        "<rPh><t>read aloud</t></rPh></si><si><t>other</t></si>"
    )
    assert rows_of(with_texts(rich)) == [(2, ["D1", "7", "1", "MayaA"])]


def test_a_text_that_the_table_lacks_is_damage():
    with pytest.raises(NotATable, match="damaged"):
        read(with_texts(""))


def test_entities_are_refused():
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'

    def with_bomb(data: bytes) -> bytes:
        start = data.index(b"<worksheet")
        return data[:start] + bomb + data[start:]

    assert rows_of(PLAIN)
    for name in (SHEET, "xl/workbook.xml"):
        change = with_bomb if name == SHEET else lambda data: bomb + data
        with pytest.raises(NotATable, match="document type"):
            read(with_part(PLAIN, name, change))


def test_entities_would_have_been_resolved(monkeypatch):
    bomb = b'<!DOCTYPE worksheet [<!ENTITY a "Mallory">]>'

    def with_bomb(data: bytes) -> bytes:
        start = data.index(b"<worksheet")
        return data[:start] + bomb + data[start:].replace(b"<v>7</v>", b"<v>&a;</v>")

    monkeypatch.setattr(xlsx_rows, "_refuse_document_type", lambda *_: None)
    monkeypatch.setattr(xlsx_rows._Formats, "text", lambda self, number, style: number)
    assert rows_of(with_part(PLAIN, SHEET, with_bomb)) == [
        (2, ["D1", "Mallory", "1", "Maya"])
    ]


def test_a_zip_bomb_is_refused_by_what_it_declares():
    content = with_part(PLAIN, SHEET, lambda data: data + b" " * 1_000_000)
    assert rows_of(content)
    with pytest.raises(UnsafeWorkbook, match="too large"):
        check_workbook(io.BytesIO(content), largest_sheets=500_000)


def test_a_zip_bomb_that_lies_about_its_size_is_refused():
    content = with_part(PLAIN, SHEET, lambda data: data + b" " * 50_000_000)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        declared = struct.pack("<I", archive.getinfo(SHEET).file_size)
    assert content.count(declared) >= 2
    lying = content.replace(declared, struct.pack("<I", 700))
    tracemalloc.start()
    with pytest.raises(NotATable, match="damaged"):
        read(lying)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize(("name", "size"), [("styles", 9), ("sharedStrings", 70)])
def test_a_part_that_is_read_whole_may_not_be_huge(name, size):
    content = with_texts("<si><t>Maya</t></si>")
    padding = b" " * size * 2**20
    padded = with_part(content, f"xl/{name}.xml", lambda data: data + padding)
    with pytest.raises(NotATable, match="part of the workbook is too large"):
        read(padded)


RELATIONS = "xl/_rels/workbook.xml.rels"


def with_relation(kind: str, data: bytes, content: bytes = PLAIN) -> bytes:
    """One more part, under a sheet's name but for another use."""
    relation = (
        f'<Relationship Id="more" Target="worksheets/sheet9.xml" Type="x/{kind}"/>'
    ).encode()
    file = io.BytesIO(
        with_part(
            content,
            RELATIONS,
            lambda old: old.replace(
                b"</Relationships>", relation + b"</Relationships>"
            ),
        )
    )
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet9.xml", data)
    return file.getvalue()


def without_styles(content: bytes) -> bytes:
    return with_part(content, RELATIONS, lambda old: old.replace(b"/styles", b"/none"))


USES = [("styles", "LARGEST_PART"), ("sharedStrings", "LARGEST_TEXTS")]


@pytest.mark.parametrize(("kind", "limit"), USES)
def test_a_sheets_name_gives_other_parts_no_sheets_limit(kind, limit, monkeypatch):
    content = with_relation(kind, b"<a/>" + b" " * 200_000, without_styles(PLAIN))
    assert rows_of(content)
    monkeypatch.setattr(xlsx_rows, limit, 100_000)
    with pytest.raises(NotATable, match="too large when unpacked: xl/worksheets"):
        read(content)


def test_a_part_that_lies_about_its_size_is_not_inflated_whole():
    content = with_part(PLAIN, "xl/styles.xml", lambda data: data + b" " * 50_000_000)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        declared = struct.pack("<I", archive.getinfo("xl/styles.xml").file_size)
    lying = content.replace(declared, struct.pack("<I", 700))
    with zipfile.ZipFile(io.BytesIO(lying)) as archive:
        tracemalloc.start()
        # The twin: all 50 MB at once.
        with pytest.raises(zipfile.BadZipFile):
            archive.read("xl/styles.xml")
        assert tracemalloc.get_traced_memory()[1] > 50_000_000
        tracemalloc.reset_peak()
        with pytest.raises(NotATable, match="damaged"):
            read(lying)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
        tracemalloc.stop()


def test_a_part_of_countless_elements_is_refused(monkeypatch):
    content = with_relation(
        "styles", b"<a>" + b"<b/>" * 500 + b"</a>", without_styles(PLAIN)
    )
    assert rows_of(content)
    monkeypatch.setattr(xlsx_rows, "MOST_ELEMENTS", 400)
    with pytest.raises(NotATable, match="too many styles"):
        read(content)


def test_texts_nested_without_end_are_refused():
    deep = "<t>x" * 200_000 + "</t>" * 200_000
    with pytest.raises(NotATable, match="nested"):
        read(with_texts(f"<si>{deep}</si>"))


def test_a_second_table_of_styles_or_texts_is_refused():
    texts = with_texts("<si><t>Maya</t></si>")
    for kind in ("styles", "sharedStrings"):
        with pytest.raises(NotATable, match=f"two parts of {kind}"):
            read(with_relation(kind, b"<a/>", texts))


def test_two_sheets_on_one_part_are_refused():
    content = saved(workbook([NAMES, ["D1", 7, 1, "Maya"]], Notes=[["Read this"]]))
    assert rows_of(content)
    doubled = with_part(
        content, RELATIONS, lambda data: data.replace(b"sheet2.xml", b"sheet1.xml")
    )
    with pytest.raises(NotATable, match="one part"):
        read(doubled)


def with_format(code: str) -> bytes:
    book = workbook([NAMES, ["D1", 7, 1, "Maya"]])
    book.active["C2"].number_format = code
    return saved(book)


def test_a_number_format_longer_than_excels_is_refused():
    assert rows_of(with_format("[" * xlsx_rows.LONGEST_FORMAT))
    with pytest.raises(NotATable, match="number format"):
        read(with_format("[" * 100_000))


def test_a_long_number_format_would_be_searched_for_long(monkeypatch):
    monkeypatch.setattr(xlsx_rows, "LONGEST_FORMAT", 10**9)
    assert seconds_to_read(with_format("[" * 20_000)) > 3 * seconds_to_read(
        with_format("0" * 20_000)
    )


def seconds_to_read(content: bytes) -> float:
    start = time.process_time()
    assert rows_of(content)
    return time.process_time() - start


def test_each_number_format_is_searched_once(monkeypatch):
    searched = []
    monkeypatch.setattr(xlsx_rows, "is_date_format", searched.append)
    styles = [("", "numFmt", {"numFmtId": "200", "formatCode": "[[["})]
    styles += [("cellXfs", "xf", {"numFmtId": "200"})] * 1000
    xlsx_rows._Formats(None).read(iter(styles))
    assert searched == ["[[["]


def test_a_zip_that_is_no_workbook_is_named():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("roster.csv", HEADER)
    with pytest.raises(NotATable, match="not an Excel workbook"):
        read(file.getvalue())


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_damaged_workbook_gives_rows_or_a_named_error(data):
    name = data.draw(
        st.sampled_from(
            [
                SHEET,
                "xl/workbook.xml",
                "xl/styles.xml",
                "xl/_rels/workbook.xml.rels",
                "",
            ]
        )
    )
    at = data.draw(st.floats(0, 1))
    junk = data.draw(
        st.one_of(
            st.binary(max_size=8),
            st.sampled_from(
                [b'r="ZZZZ9"', b"</c>", b't="s"', b"-1", b"1e999", b'r="99999999999"']
            ),
        )
    )
    cut = data.draw(st.integers(0, 12))

    def damaged(content: bytes) -> bytes:
        place = int(at * len(content))
        return content[:place] + junk + content[place + cut :]

    content = with_part(PLAIN, name, damaged) if name else damaged(PLAIN)
    try:
        read(content)
    except RosterUnreadable as error:
        assert str(error)


# Columns -----------------------------------------------------------------------------


def test_headers_of_real_systems_are_mapped():
    columns = columns_of(
        ["LEA Code", "School_Name", "School ID", "Grade Level", "State Student ID"]
        + ["Student ID", "First Name", "LAST NAME", "E-Mail", "DOB", "Lunch Status", ""]
        + [
            "password",
            "metadata.x",
            "Home Phone",
            "Parent Email",
            "Brith Date",
            "",
            "Lunch Status",
        ]
    )
    assert {name: columns.heading(name) for name in columns.fields} == {
        "district": "LEA Code",
        "school": "School ID",
        "school_name": "School_Name",
        "grade": "Grade Level",
        "external_id": "Student ID",
        "given_name": "First Name",
        "family_name": "LAST NAME",
        "email": "E-Mail",
        "birth_date": "DOB",
    }
    assert list(columns.attributes) == ["Lunch Status"]
    assert columns.ignored["password"] == "passwords are never kept"
    assert set(columns.ignored) == {
        "State Student ID", "password", "metadata.x", "Home Phone", "Parent Email",
        "Brith Date", "Lunch Status",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("header", "field"),
    [("Distrct", "district"), ("Schol Name", "school_name"), ("Langauge", "language"),
     ("Given Nmae", "given_name"), ("Birth Daet", "birth_date")],
)  # fmt: skip
def test_misspelt_headers_are_read_and_reported(header, field):
    columns = columns_of([header])
    assert columns.fields == {field: 0} | (
        {"school": 0} if field == "school_name" else {}
    )
    assert columns.guessed == {header: field}


@pytest.mark.parametrize(
    "header",
    ["Full Name 2", "Middle Name", "Mother", "SSN", "Street Address", "Lunch Number",
     "Homeroom Teacher Name", "Username", "Parent Phone", "Guardian", "Birth City"],
)  # fmt: skip
def test_columns_that_identify_never_become_subgroups(header):
    columns = columns_of(["district", "school", "student id", header])
    assert not columns.attributes
    assert header in columns.ignored


# Cells ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "readings"),
    [
        ("2014-03-04", ("2014-03-04", "2014-03-04")),
        ("2014-03-04T00:00:00Z", ("2014-03-04", "2014-03-04")),
        ("3/4/2014", ("2014-03-04", "2014-04-03")),
        ("3/4/14 12:00 AM", ("2014-03-04", "2014-04-03")),
        ("13/4/2014", ("", "2014-04-13")),
        ("4/13/2014", ("2014-04-13", "")),
        ("4.3.2014", ("2014-03-04", "2014-03-04")),
        ("4-Mar-2014", ("2014-03-04", "2014-03-04")),
        ("March 4th, 2014", ("2014-03-04", "2014-03-04")),
        ("41702", ("2014-03-04", "2014-03-04")),
        ("20140304", ("2014-03-04", "2014-03-04")),
        ("29/2/2012", ("", "2012-02-29")),
        ("3/4/50", ("1950-03-04", "1950-04-03")),
        ("N/A", ("", "")),
    ],
)
def test_birth_dates_as_people_write_them(cell, readings):
    assert field_parsers.parse_birth_date(cell, TODAY) == readings


@pytest.mark.parametrize(
    "cell", ["soon", "30.2.2012", "3/4", "2026-01-01", "1850-01-01"]
)
def test_birth_dates_that_nobody_has(cell):
    with pytest.raises(InvalidCell):
        field_parsers.parse_birth_date(cell, TODAY)


@pytest.mark.parametrize(
    ("cell", "grade"),
    [("4", "04"), ("4th", "04"), ("Grade 4", "04"), ("gr. 4", "04"), ("4.0", "04"),
     ("12TH GRADE", "12"), ("k", "KG"), ("Pre-K", "PK"), ("pk", "PK"), ("TK", "TK"),
     ("Freshman", "09"), ("13", "13"), ("ug", "UG"), ("other", "Other"), ("", "")],
)  # fmt: skip
def test_grades_become_the_standards_codes(cell, grade):
    assert field_parsers.parse_grade(cell) == grade


@pytest.mark.parametrize("cell", ["14", "K-5", "-4", "four"])
def test_no_grade_is_guessed(cell):
    with pytest.raises(InvalidCell):
        field_parsers.parse_grade(cell)


@pytest.mark.parametrize(
    ("cell", "id_"),
    [("12345.0", "12345"), (" 00123 ", "00123"), ("'00123", "00123"),
     ('="00123"', "00123"), ("１２３", "123"), ("A-1.0", "A-1.0"), ("12E", "12E")],
)  # fmt: skip
def test_ids_survive_excel(cell, id_):
    assert field_parsers.parse_external_id(cell) == id_


@pytest.mark.parametrize(
    "cell", ["", "  ", "1.23E+11", "#N/A", "#REF!", "x" * 129, "a\x07b"]
)
def test_ids_that_excel_destroyed_are_refused(cell):
    with pytest.raises(InvalidCell):
        field_parsers.parse_external_id(cell)


def test_invisible_signs_are_taken_out_and_joiners_stay():
    assert (
        field_parsers.parse_text("\u200b\ufeffMaya\u00a0\u202eLopez\n") == "Maya Lopez"
    )
    assert field_parsers.parse_text("می\u200cروم") == "می\u200cروم"


def test_languages_are_known_by_code_and_by_name():
    names = field_parsers.language_names({"en": "English", "es": "Español"})
    written = ["es", "ES-mx", "Spanish", "español", "spa", "eng", "", "Klingon"]
    read_as = [field_parsers.parse_language(cell, names) for cell in written]
    assert read_as == ["es", "es", "es", "es", "es", "en", "", None]


@given(st.text(alphabet="ab0_.+-@A\u00e9 ", max_size=30))
@settings(max_examples=300)
def test_no_plain_address_is_one_that_django_refuses(text):
    if field_parsers._PLAIN_EMAIL.fullmatch(text):
        validate_email(text)


@pytest.mark.parametrize(
    "cell", ["a@b.co", "Ann.Lee+1@d001.example.org", "o'hara@x.org", "\u00e9@x.org"]
)
def test_an_address_is_kept_or_refused_as_django_does(cell):
    try:
        validate_email(cell)
    except ValidationError:
        with pytest.raises(InvalidCell):
            field_parsers.parse_email(cell)
    else:
        assert field_parsers.parse_email(cell) == cell
