"""Labels that are numbers are read as their cells show them."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from openpyxl import Workbook

from survey.instrument.xlsform import Reading, read_xlsform
from survey.instrument.xlsform.number_formats import shown_number
from survey.tests.workbooks import saved


@pytest.mark.parametrize(
    ("number", "code", "shown"),
    [
        ("0.1", "0%", "10%"),
        ("0.125", "0.0%", "12.5%"),
        ("0.1", "0 %", "10 %"),
        ("2", '"$"0.00', "$2.00"),
        ("2.5", '"$"#,##0.00', "$2.50"),
        ("2.5", "[$€-2] 0.00", "€ 2.50"),
        ("-2", '"$"0.00', "-$2.00"),
        ("1234567", "#,##0", "1,234,567"),
        ("7", "000", "007"),
        ("12", r"0\ \m\i\n", "12 min"),
        ("2.5", "0", "3"),
        ("3", "0.00_);(0.00)", "3.00"),
        ("-3", "0.00_);(0.00)", None),
        ("2026-01-02", "d\\-mmm", None),
        ("0.5", "# ?/?", None),
        ("1200", "0.00E+00", None),
        ("5", '[<6]"few";0', None),
        ("9" * 40, "0.00", None),
    ],
)
def test_number_is_shown_in_its_format(number: str, code: str, shown: str | None):
    assert shown_number(number, code) == shown


def read_options(*options: tuple[Any, str, Any, str]) -> Reading:
    """Read a survey whose options have these values and labels with formats."""
    book = Workbook()
    survey, choices = book.active, book.create_sheet("choices")
    survey.title = "survey"
    survey.append(["type", "name", "label", "default"])
    survey.append(["select_one list", "q", "Q?"])
    survey.append(["date", "d", "D?", datetime.date(2027, 3, 1)])
    choices.append(["list_name", "name", "label"])
    for row, (value, value_format, label, label_format) in enumerate(options, start=2):
        choices.append(["list", value, label])
        choices.cell(row, 2).number_format = value_format
        choices.cell(row, 3).number_format = label_format
    return read_xlsform(saved(book), name="formats")


def test_label_is_what_the_author_saw():
    reading = read_options(
        ("a", "General", 0.1, "0%"),
        ("b", "General", 2, '"$"0.00'),
        ("c", "General", 3, "General"),
        (4, "0", "Four", "@"),
    )
    assert reading.draft
    labels = [option.label["en"] for option in reading.draft.option_sets["list"]]
    assert labels == ["10%", "$2.00", "3", "Four"]
    assert not [warning for warning in reading.warnings if warning.sheet == "choices"]


def test_cell_that_shows_something_else_gives_a_warning():
    day = datetime.date(2026, 1, 2)
    reading = read_options((1, "00", day, "d\\-mmm"), (2, "0", day, "yyyy-mm-dd"))
    assert reading.draft
    assert reading.draft.option_sets["list"][0].value == "1"
    assert [
        (w.row, w.column, w.text) for w in reading.warnings if w.sheet == "choices"
    ] == [
        (2, "name", "01"),
        (2, "label", ""),
    ]
