"""Whole numbers are shown as their cells show them."""

from __future__ import annotations

import io

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.instrument.spreadsheets.number_formats import number_format
from survey.people.rosters.file_reader import open_table
from survey.people.rosters.layouts import KnownPlace

LINCOLN = KnownPlace("riverside", "Riverside", "lincoln", "Lincoln")


@pytest.mark.parametrize(
    ("code", "number", "shown"),
    [
        ("0000000", 12345, "0012345"),
        ("000", 1234, "1234"),
        ("00-0000", 12346, "01-2346"),
        (r"000\-00\-0000", 12347, "000-01-2347"),
        ("0000 0000", 12348, "0001 2348"),
        ("00000-0000", 123456789, "12345-6789"),
        ('"S"00000', 12349, "S12349"),
        ("A000", 5, "A005"),
        (r"\E000", 7, "E007"),
        ('0"th"', 7, "7th"),
        ("[$-409]000", 7, "007"),
        ("[$€-407]00", 7, "€07"),
        ("[Red]000;[Blue]-000", -5, "-005"),
        ("00-00", -5, "-00-05"),
        ("#,##0", 12351, "12,351"),
        ("#,##0", 351, "351"),
        ("#,##0.00_);(#,##0.00)", -12351, "(12,351)"),
        ('_(* #,##0_);_(* (#,##0);_(* "-"_);_(@_)', 1234567, "1,234,567"),
        ("0.00E+00", 12350, "1.24E+04"),
        ("[<=9999999]###-####;(###) ###-####", 5551234, "555-1234"),
        ("[<=9999999]###-####;(###) ###-####", 6175551234, "(617) 555-1234"),
        ('000;-000;"none"', 0, "0"),
    ],
)
def test_a_number_is_shown_in_its_format(code, number, shown):
    show = number_format(code)
    assert show and show(number) == shown


@pytest.mark.parametrize(
    "code", ["General", "0", "#", "0.00", "0_)", "0%", "# ?/?", "@", "", '"only text"']
)
def test_other_formats_show_the_plain_number(code):
    assert number_format(code) is None


@given(
    st.text('0#?,.-;"\\_*[]<>=E+@/%$ aG', max_size=30), st.integers(-(10**14), 10**14)
)
def test_any_format_shows_a_text(code, number):
    show = number_format(code)
    assert show is None or isinstance(show(number), str)


def test_ids_are_read_as_their_cells_show_them():
    book = openpyxl.Workbook()
    book.active.append(["Student ID", "Grade"])
    formats = ["0000000", "00-0000", '"S"00000', "General", "0.00"]
    for row, code in enumerate(formats, 2):
        book.active.append([12345, 7])
        book.active.cell(row, 1).number_format = code
        book.active.cell(row, 2).number_format = "0.0"
    file = io.BytesIO()
    book.save(file)
    with open_table(file, None, LINCOLN) as table:
        ids = [cells for _number, cells in table.rows]
    shown = ["0012345", "01-2345", "S12345", "12345", "12345"]
    assert ids == [[text, "7"] for text in shown]
