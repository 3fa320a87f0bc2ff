"""Compare the files with the reference implementation, cell by cell."""

from __future__ import annotations

import csv
import hashlib
import io
import string
from datetime import UTC, datetime, time, timedelta

import openpyxl
import polars
import pytest
from django.conf import settings as django_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.csv_injection import escape_formula
from reports.answers import answer_mask, snapshot
from reports.exports.cells import Date
from reports.exports.row_builder import value_cell
from reports.exports.xlsx_file import xlsx_cell
from reports.models import Export
from reports.tests.exports import reference
from reports.tests.exports.conftest import (
    COLUMNS,
    FULL,
    HIDE,
    SKIP,
    answer,
    answer_all,
    identify,
    made,
    released,
)
from survey.models import Respondent, Response
from survey.work.files import path_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known_key")]


def content(export: Export) -> bytes:
    assert export.file_name, export.job.message
    return path_of(export.file_name).read_bytes()


def rows_of(export: Export) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content(export).decode("utf-8-sig"))))


def test_a_wide_file_has_a_row_for_each_respondent(staff, fall, maya, other_people):
    export = made(staff.state, fall)

    assert content(export) == reference.as_csv(reference.wide(export, COLUMNS))
    mine = next(row for row in rows_of(export) if row["language"] == "es")
    assert mine["comment"] == FULL["comment"]
    assert (mine["safe"], mine["pets_cat"], mine["far"]) == ("2", "1", "-1.50")
    assert (mine["teen"], mine["score"], mine["wake"]) == ("-97", "20", "07:30")
    # Finished at 05:30 UTC, which is the day before in Chicago.
    assert (mine["started"], mine["finished"]) == ("2027-03-01", "2027-03-01")
    assert (export.rows, export.respondents) == (3, 3)
    assert export.responses == Response.objects.count()
    assert export.sha256 == hashlib.sha256(content(export)).hexdigest()
    assert export.expires_at - export.made_at == timedelta(days=7)


def test_skipped_not_reached_and_not_applicable_have_different_codes(
    staff, fall, maya, other_people
):
    rows = rows_of(made(staff.state, fall))
    halfway = next(row for row in rows if row["school_code"] == "washington")
    assert halfway["safe"] == halfway["pets_cat"] == "-98"
    assert halfway["last"] == halfway["born"] == "-99"
    # A negative number stays a number, and a text that looks like one a text.
    assert (halfway["age"], halfway["comment"]) == ("-5", "'-5")
    masked = next(row for row in rows if row["school_code"] == "roosevelt")
    assert (masked["teen"], masked["safe"]) == ("-97", "-1")
    assert masked["comment"] == "'=1+1"


def test_items_of_a_page_that_was_passed_by_are_not_applicable(staff, fall, enrol):
    young = {"safe": "1", "age": "9", "pets": SKIP}
    finished = enrol(fall, staff.lincoln, completed_at=datetime.now(UTC))
    answer(finished, {**young, "last": "bye"})
    # Stopped on the first page, so the other pages were not reached.
    answer(enrol(fall, staff.washington), young)
    # Passed by the third page, and left on the fourth.
    answer(enrol(fall, staff.roosevelt), {**young, "last": SKIP})
    rows = {row["school_code"]: row for row in rows_of(made(staff.state, fall))}
    cells = {
        name: (row["teen"], row["wake"], row["born"], row["score"])
        for name, row in rows.items()
    }
    assert cells == {
        "lincoln": ("-97", "-97", "-99", "10"),
        "washington": ("-99", "-99", "-99", "-99"),
        "roosevelt": ("-97", "-97", "-99", "10"),
    }


def test_without_masking_an_inapplicable_answer_would_be_exported(
    staff, fall, maya, other_people, monkeypatch
):
    released(fall)
    monkeypatch.setattr(answer_mask.AnswerMask, "concerns", lambda self, name: False)
    rows = rows_of(made(staff.state, fall))
    masked = next(row for row in rows if row["school_code"] == "roosevelt")
    assert masked["teen"] == "2"


def test_a_long_file_has_a_row_for_each_response(staff, fall, maya, other_people):
    export = made(staff.state, fall, format="long", language="es")

    assert content(export) == reference.as_csv(reference.long(export))
    assert export.rows == Response.objects.count()
    safe = next(row for row in rows_of(export) if row["item"] == "safe")
    assert safe["label"] in ("De acuerdo", "Prefiero no decir", "")


def text_of(cell: object) -> str:
    """Return a cell as it is in a CSV file."""
    if isinstance(cell, datetime):
        return str(cell).removesuffix(" 00:00:00")
    return "" if cell is None else str(cell).removesuffix(":00")


def test_an_excel_sheet_has_numbers_dates_and_texts(staff, fall, maya, other_people):
    export = made(staff.state, fall, format="xlsx")
    rows = reference.wide(export, COLUMNS)

    book = openpyxl.load_workbook(path_of(export.file_name))
    assert book.properties.description == f"Groundswell {django_settings.VERSION}"
    sheet = book["Responses"]
    lines = [list(row) for row in sheet.iter_rows(values_only=True)]
    assert lines[0] == rows[0]
    for cells, expected in zip(lines[1:], rows[1:], strict=True):
        assert list(map(text_of, cells)) == [
            str(float(text)) if text == "-1.50" else text for text in expected
        ]
    names = rows[0]
    ages = {row[names.index("age")] for row in lines[1:]}
    assert {type(age) for age in ages} == {int}
    [mine] = [row for row in lines if row[names.index("language")] == "es"]
    assert mine[names.index("born")] == datetime(2014, 2, 28)
    assert mine[names.index("wake")] == time(7, 30)
    assert mine[names.index("finished")] == datetime(2027, 3, 1)
    assert all(
        cell.data_type in ("s", "inlineStr", "n", "d") for row in sheet for cell in row
    )


def test_an_excel_sheet_with_names_has_times_and_birth_dates(staff, fall, maya):
    identify(maya, birth_date="2014-02-27")
    names = {"identities": True, "reason": "consent has to be checked"}
    places = {"districts": [staff.riverside.pk]}
    export = made(staff.dana, fall, format="xlsx", places=places, **names)
    sheet = openpyxl.load_workbook(path_of(export.file_name))["Responses"]
    header, cells = sheet.iter_rows(values_only=True)
    by_column = dict(zip(header, cells, strict=True))
    assert by_column["birth_date"] == datetime(2014, 2, 27)
    assert by_column["started"] == datetime(2027, 3, 1, 8, 5, 6)
    assert by_column["withdrawn"] is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1900-03-01", 61),
        ("2027-03-01", 46447),
        ("2027-03-01T06:00", 46447.25),
        ("2027-03-01 06:00:00", 46447.25),
        ("23:59:59", 86_399 / 86_400),
        ("00:00", 0),
        ("9999-12-31", 2_958_465),
        # Excel has a 29th of February 1900, and no day before that year.
        ("1900-02-28", "1900-02-28"),
        ("0001-01-01T00:00", "0001-01-01T00:00"),
    ],
)
def test_dates_are_counted_as_excel_does(text, expected):
    cell = xlsx_cell(Date(text))
    assert cell == expected
    assert isinstance(cell, str) == isinstance(expected, str)


def test_a_text_of_digits_is_the_same_in_all_formats():
    """A calculated student number 0007 was 7 in Excel, and 0007 in CSV."""
    for value in ("0007", "-07", "007.5"):
        cell = value_cell("calculate", value)
        assert xlsx_cell(cell) == escape_formula(value)
    assert xlsx_cell(value_cell("hidden", "0007")) == "0007"
    assert xlsx_cell(value_cell("calculate", "7")) == 7
    assert xlsx_cell(value_cell("calculate", "-0.5")) == -0.5
    # A number, however it was typed.
    assert xlsx_cell(value_cell("integer", "0007")) == 7


def test_missing_answers_can_be_blank_in_columns_of_some_types(
    staff, fall, maya, other_people
):
    sheets = {}
    for blank in ([], ["date", "text"], ["choice", "number", "date", "text"]):
        export = made(staff.state, fall, blank_missing=blank)
        rows = rows_of(export)
        [halfway] = [row for row in rows if row["school_code"] == "washington"]
        names = ("born", "last", "bus", "pets_cat", "promise", "score")
        sheets[len(blank)] = [halfway[name] for name in names]
        # Answers stay, and so do blanks of other versions.
        [mine] = [row for row in rows if row["language"] == "es"]
        assert (mine["safe"], mine["comment"]) == ("2", FULL["comment"])
    assert sheets == {
        0: ["-99", "-99", "-99", "-98", "-99", "-99"],
        2: ["", "", "-99", "-98", "-99", "-99"],
        4: [""] * 6,
    }


def test_a_date_column_without_codes_is_read_as_dates(staff, fall, maya, other_people):
    export = made(staff.state, fall, format="xlsx", blank_missing=["date"])
    frame = polars.read_csv(
        io.BytesIO(content(made(staff.state, fall, blank_missing=["date"]))),
        try_parse_dates=True,
    )
    assert frame["born"].dtype == polars.Date
    sheet = openpyxl.load_workbook(path_of(export.file_name))["Responses"]
    header, *rows = sheet.iter_rows(values_only=True)
    born = {row[header.index("born")] for row in rows}
    assert born == {datetime(2014, 2, 28), None}


def test_polars_reads_the_same_file(staff, fall, maya, other_people):
    export = made(staff.state, fall)
    frame = polars.read_csv(io.BytesIO(content(export)), infer_schema_length=None)
    assert frame.shape == (3, len(reference.wide(export, COLUMNS)[0]))
    assert frame["age"].dtype == polars.Int64
    assert sorted(frame["age"].to_list()) == [-5, 9, 12]


def test_labels_replace_codes(staff, fall, maya, other_people):
    export = made(staff.state, fall, labels=True, language="es", bom=True)
    assert content(export).startswith(b"\xef\xbb\xbf")
    expected = reference.as_csv(reference.wide(export, COLUMNS), bom=True)
    assert content(export) == expected


def test_labels_name_the_question_that_they_quote(staff, helped, enrol):
    answer(enrol(helped, staff.lincoln), {"child": "Noor", "helper": "t"})
    [coded] = rows_of(made(staff.state, helped))
    assert (coded["child"], coded["helper"]) == ("Noor", "t")
    # What a rule makes of a label is an answer like that of any calculation.
    assert coded["said"] == "Noor’s teacher"
    [labelled] = rows_of(made(staff.state, helped, labels=True, language="es"))
    assert labelled["helper"] == "Docente de ${child}"


def test_versions_line_up_by_item_name(staff, fall, spring, maya, enrol):
    later = enrol(spring, staff.lincoln)
    answer(later, {"safe": "1", "lunch": "good", "far": "very", "comment": SKIP})
    export = made(staff.state, fall, spring)
    columns = [*COLUMNS[:4], ("lunch", None), *COLUMNS[4:]]
    assert content(export) == reference.as_csv(reference.wide(export, columns))
    rows = {row["survey_version"]: row for row in rows_of(export)}
    assert (rows["1"]["lunch"], rows["2"]["lunch"]) == ("", "good")
    assert (rows["1"]["far"], rows["2"]["far"]) == ("-1.50", "very")


def test_missing_codes_never_equal_an_answer(staff, fall, maya, enrol):
    answer(enrol(fall, staff.lincoln), {"age": "-98", "far": "-997.0"})
    rows = rows_of(made(staff.state, fall))
    late = next(row for row in rows if row["age"] == "-98")
    assert (late["safe"], late["far"]) == ("-9999", "-997.0")


def test_a_roster_column_is_renamed_if_an_item_has_its_name(
    staff, fall, maya, enrol, db
):
    answer(enrol(fall, staff.lincoln, attributes={"age": "old"}), {"age": "9"})
    rows = rows_of(made(staff.state, fall))
    assert {(row["age"], row["roster_age"]) for row in rows} == {
        ("9", "old"),
        ("12", ""),
    }


def test_roster_columns_that_are_not_declared_are_left_out(
    staff, fall, spring, maya, enrol
):
    names = {"Pupil": "Maya Lopez", "sex": "f"}
    answer(enrol(fall, staff.lincoln, attributes=names), {"age": "9"})
    answer(enrol(spring, staff.lincoln, attributes=names), {"safe": "1"})
    spring.subgroups = {"Pupil": ["Maya Lopez"]}
    spring.save(update_fields=["subgroups"])
    assert "Maya Lopez" not in content(made(staff.state, fall)).decode()
    # A column that another administration declares is empty here.
    rows = rows_of(made(staff.state, fall, spring))
    assert {(row["administration"], row["Pupil"], row["sex"]) for row in rows} == {
        ("fall", "", "f"),
        ("spring", "Maya Lopez", ""),
    }


def test_finished_only_leaves_out_unfinished_respondents(
    staff, fall, maya, other_people
):
    export = made(staff.state, fall, finished_only=True)
    assert [row["research_id"] for row in rows_of(export)] == [
        reference.research_id(maya)
    ]


def test_only_schools_in_the_scope_are_exported(staff, fall, maya, other_people):
    export = made(staff.dana, fall, places={"districts": [staff.riverside.pk]})
    assert {row["school_code"] for row in rows_of(export)} == {"lincoln", "washington"}
    export = made(staff.dana, fall, places={"schools": [staff.lincoln.pk]})
    assert {row["school_code"] for row in rows_of(export)} == {"lincoln"}


@pytest.mark.parametrize("part", [0, 2])
@pytest.mark.parametrize("shape", ["wide", "long"])
def test_both_ways_to_join_read_the_same(
    staff, fall, maya, other_people, monkeypatch, part, shape
):
    monkeypatch.setattr(snapshot, "LARGE_PART", part)
    export = made(staff.state, fall, format=shape)
    slow = getattr(reference, shape)
    expected = slow(export, COLUMNS) if shape == "wide" else slow(export)
    assert content(export) == reference.as_csv(expected)


# Texts that people may have typed, and worse.
texts = st.text(
    st.sampled_from(string.printable + "\x02\x1f\x1b;=+-@＝'\"\\é🙂\u2028\ufeff\ufffe")
    | st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
    min_size=1,
    max_size=40,
) | st.sampled_from(["=cmd|' /C calc'!A0", "-5", "-97", "x" * 5000, "\\.", '"', "\\N"])
numbers = st.integers(-(10**15) + 1, 10**15 - 1).map(str)
decimals = st.decimals(
    -(10**6), 10**6, places=3, allow_nan=False, allow_infinity=False
).map(lambda number: f"{number:f}")
blank = st.sampled_from([SKIP, HIDE])
values = {
    "safe": st.sampled_from(["1", "2", "-1"]) | blank,
    "pets": st.sampled_from(["cat", "dog", "cat dog"]) | blank,
    "age": numbers | blank,
    "far": decimals | blank,
    "comment": texts | blank,
    "born": st.dates().map(str) | blank,
    "bus": st.sampled_from(["0", "15", "60"]) | blank,
    "promise": st.just("OK") | blank,
    "teen": st.sampled_from(["1", "2", "-1"]) | blank,
    "wake": st.times().map(lambda clock_time: f"{clock_time:%H:%M}") | blank,
    "last": texts | blank,
}
answers = st.fixed_dictionaries({}, optional=values)


@pytest.fixture
def crowd(staff, fall, maya, other_people, enrol) -> list[Respondent]:
    return [maya, *other_people, *(enrol(fall, staff.lincoln) for _ in range(9))]


# Three exports take long, whatever the number of people: many in few examples.
@settings(
    max_examples=20,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
@given(people=st.lists(answers, min_size=12, max_size=12), labels=st.booleans())
def test_files_equal_the_reference_for_any_answers(staff, fall, crowd, people, labels):
    Response.objects.all().delete()
    answer_all(fall, zip(crowd, people, strict=True))
    released(fall)
    wide = made(staff.state, fall, labels=labels)
    taken = reference.CODES.values()
    if not any(given.get("age") in taken for given in people):
        assert content(wide) == reference.as_csv(reference.wide(wide, COLUMNS))
    long = made(staff.state, fall, format="long")
    assert content(long) == reference.as_csv(reference.long(long))
    sheet = made(staff.state, fall, format="xlsx")
    book = openpyxl.load_workbook(path_of(sheet.file_name))
    column = [cell.value for cell in book["Responses"][1]].index("last")
    values = [row[column] for row in book["Responses"].iter_rows(2, values_only=True)]
    expected = [
        escape_formula(text) if isinstance(text, str) else None
        for text in (
            dict(zip((person.pk for person in crowd), people, strict=True))[
                person.pk
            ].get("last")
            for person in reference.people_of(sheet)
        )
    ]
    for text, cell in zip(expected, values, strict=True):
        if text is not None:
            assert unescaped(cell) == text.replace("\r\n", "\n").replace("\r", "\n")
    for export in (wide, long, sheet):
        Export.objects.filter(pk=export.pk).update(file_name="")
        path_of(export.file_name).unlink()
        path_of(export.codebook_name).unlink()
        path_of(export.codebook_table_name).unlink()
        path_of(export.documents_name).unlink()


def unescaped(cell: object) -> str:
    return (
        openpyxl.utils.escape.unescape(str(cell))
        .replace("\r\n", "\n")
        .replace("\r", "\n")
    )


def test_an_excel_sheet_has_a_bold_header_that_stays_and_fits(staff, fall, maya):
    export = made(staff.state, fall, format="xlsx")
    book = openpyxl.load_workbook(path_of(export.file_name))
    for sheet in book:
        assert sheet.freeze_panes == "B2"
        header = list(sheet[1])
        assert all(cell.font.bold for cell in header)
        assert not any(cell.font.bold for cell in sheet[2])
        # Neighbours of one width are stored together.
        widths = {
            column: each.width
            for each in sheet.column_dimensions.values()
            for column in range(each.min, each.max + 1)
        }
        for cell in header:
            assert min(len(cell.value), 39) < widths[cell.column] <= 41
            assert widths[cell.column] >= 11


def test_a_column_that_is_left_out_for_most_people_says_so(staff, fall, enrol):
    # One language has most people, and all others have one each.
    fall.minimum_group = 5
    fall.save()
    for language in ["en"] * 5 + ["es", "so", "vi", "ar", "zh", "fr", "pl"]:
        person = enrol(fall, staff.lincoln, language=language)
        answer(person, {"safe": "1"})
    export = made(staff.state, fall, format="xlsx")
    book = openpyxl.load_workbook(path_of(export.file_name))
    notes = {cell.value: cell.comment for cell in book["Responses"][1]}
    assert "in 58 % of the rows" in notes["language"].text
    assert notes["school_code"] is None
    about = {row[0]: row[5] for row in book["Codebook"].iter_rows(values_only=True)}
    assert about["language"].endswith(
        "where too few people would share what the row shows about them."
    )
    page = path_of(export.codebook_name).read_text()
    assert page.count("in 58 % of the rows") >= 1
