"""Parse single cells as people write them."""

from __future__ import annotations

from datetime import date

import pytest
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from hypothesis import given, settings
from hypothesis import strategies as st

from survey.people.rosters import date_parsers, field_parsers
from survey.people.rosters.field_parsers import InvalidCell

TODAY = date(2026, 11, 21)


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
        ("２０１４-０３-０４", ("2014-03-04", "2014-03-04")),
        ("٤/٣/٢٠١٤", ("2014-04-03", "2014-03-04")),
    ],
)
def test_birth_date_is_read_in_all_usual_forms(cell, readings):
    assert date_parsers.parse_birth_date(cell, TODAY) == readings


@pytest.mark.parametrize(
    "cell", ["soon", "30.2.2012", "3/4", "2026-01-01", "1850-01-01"]
)
def test_impossible_birth_date_is_refused(cell):
    with pytest.raises(InvalidCell):
        date_parsers.parse_birth_date(cell, TODAY)


@pytest.mark.parametrize(
    ("cell", "grade"),
    [("4", "04"), ("4th", "04"), ("Grade 4", "04"), ("gr. 4", "04"), ("4.0", "04"),
     ("12TH GRADE", "12"), ("k", "KG"), ("Pre-K", "PK"), ("pk", "PK"), ("TK", "TK"),
     ("Freshman", "09"), ("13", "13"), ("ug", "UG"), ("other", "Other"), ("", ""),
     ("７", "07"), ("Seventh", "07"), ("Grade: 7", "07"), ("٧", "07"),
     ("Ｋ", "KG"), ("8\u3000", "08")],
)  # fmt: skip
def test_grade_becomes_its_standard_code(cell, grade):
    assert field_parsers.parse_grade(cell) == grade


@pytest.mark.parametrize("cell", ["14", "K-5", "-4", "four"])
def test_unknown_grade_is_refused(cell):
    with pytest.raises(InvalidCell):
        field_parsers.parse_grade(cell)


@pytest.mark.parametrize(
    ("cell", "id_"),
    [("12345.0", "12345"), (" 00123 ", "00123"), ("'00123", "00123"),
     ('="00123"', "00123"), ("１２３", "123"), ("A-1.0", "A-1.0"), ("12E", "12E"),
     ("Ｊ１２３", "J123"), ("-V1", "-V1"), ("0", "0"),
     ("'00123'", "00123"), ("'O'Neil", "O'Neil"), ("T-7A", "T-7A")],
)  # fmt: skip
def test_id_is_read_as_it_was_before_excel(cell, id_):
    assert field_parsers.parse_external_id(cell) == id_


@pytest.mark.parametrize(
    "cell",
    ["", "  ", "1.23E+11", "#N/A", "#REF!", "x" * 129, "a\x07b", "#SPILL!"]
    + ["-", "----------", "***", "N/A", "none", "NULL", "unknown", "TBD", "＿＿"]
    + [
        "Total: 245",
        "Grand total",
        "Page 1 of 3",
        "(2 rows affected)",
        "End of report",
    ],
)
def test_id_that_excel_destroyed_is_refused(cell):
    with pytest.raises(InvalidCell):
        field_parsers.parse_external_id(cell)


@pytest.mark.parametrize("cell", ["", "------", "--", "N/A", "none", "NULL", "…"])
def test_dashes_and_words_for_nothing_are_no_place(cell):
    with pytest.raises(InvalidCell):
        field_parsers.parse_place_code(cell)


def test_codes_that_are_also_words_stay():
    assert field_parsers.parse_place_code("NA") == "na"
    assert field_parsers.parse_place_code("４２") == "42"


@pytest.mark.parametrize(
    ("cell", "parser", "value"),
    [
        ("７A", field_parsers.parse_classroom, "7A"),
        ("maya＠x.org", field_parsers.parse_email, "maya@x.org"),
        ("ｓｔｕｄｅｎｔ", field_parsers.parse_role, "student"),
        ("Ｗ", field_parsers.parse_status, "left"),
        ("Ｙ", field_parsers.value_key, "y"),
    ],
)
def test_full_width_signs_are_read_in_all_fields(cell, parser, value):
    assert parser(cell) == value


@pytest.mark.parametrize(
    ("text", "names"),
    [("Ortiz, Ana Maria", ("Ana Maria", "Ortiz")), ("Ana Ortiz", ("Ana", "Ortiz")),
     ("Ortiz Jr., Luis", ("Luis", "Ortiz Jr.")),
     ("Luis Ortiz Jr.", ("Luis", "Ortiz Jr.")),
     ("Ortiz, Jr., Luis", ("Luis", "Ortiz Jr.")),
     ("Luis Ortiz, III", ("Luis", "Ortiz III")),
     ("Ana", ("Ana", "")), ("Li, X", ("X", "Li")), ("A B", ("A", "B")),
     ("Lee, Ann, Marie", ("Ann, Marie", "Lee")), ("Ortiz,", ("", "Ortiz")),
     ("Sr", ("Sr", "")), ("Ana Sr", ("Ana Sr", ""))],
)  # fmt: skip
def test_a_full_name_is_split(text, names):
    assert field_parsers.split_name(text) == names


def test_invisible_characters_are_removed_and_joiners_kept():
    assert (
        field_parsers.parse_text("\u200b\ufeffMaya\u00a0\u202eLopez\n") == "Maya Lopez"
    )
    assert field_parsers.parse_text("می\u200cروم") == "می\u200cروم"


def test_language_is_read_by_code_and_by_name():
    names = field_parsers.language_names({"en": "English", "es": "Español"})
    written = ["es", "ES-mx", "Spanish", "español", "spa", "eng", "", "Klingon"]
    read_as = [field_parsers.parse_language(cell, names) for cell in written]
    assert read_as == ["es", "es", "es", "es", "es", "en", "", None]


@given(st.text(alphabet="ab0_.+-@A\u00e9 ", max_size=30))
@settings(max_examples=300)
def test_every_plain_address_is_valid_for_django(text):
    if field_parsers._PLAIN_EMAIL.fullmatch(text):
        validate_email(text)


@pytest.mark.parametrize(
    "cell", ["a@b.co", "Ann.Lee+1@d001.example.org", "o'hara@x.org", "\u00e9@x.org"]
)
def test_address_is_valid_exactly_if_it_is_for_django(cell):
    try:
        validate_email(cell)
    except ValidationError:
        with pytest.raises(InvalidCell):
            field_parsers.parse_email(cell)
    else:
        assert field_parsers.parse_email(cell) == cell


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("2026-10-01", "made a date by Excel"),
        ("2026-10-01 00:00:00", "made a date by Excel"),
        ("1-Oct", "made a date by Excel"),
        ("12-mar", "made a date by Excel"),
        ("3-ene", "made a date by Excel"),
        ("Oct-32", "made a date by Excel"),
        ("12,351", "thousands separators"),
        ("1,234,567", "thousands separators"),
        ("6.1234E+10", "shortened by Excel"),
    ],
)
def test_code_or_class_that_excel_changed_is_refused(cell, reason):
    for parse in (
        field_parsers.parse_external_id,
        field_parsers.parse_place_code,
        field_parsers.parse_classroom,
    ):
        with pytest.raises(InvalidCell, match=reason):
            parse(cell)


@pytest.mark.parametrize(
    "cell", ["10-1", "MAR-12", "7-Red", "Abc-12", "12-ABC", "1,2", "05-2014", "3E5"]
)
def test_similar_codes_and_classes_are_read(cell):
    assert field_parsers.parse_classroom(cell) == cell
    assert field_parsers.parse_place_code(cell) == cell.casefold()
