"""Surveys that are damaged, huge or hostile give named problems.

Hostile archives are in survey/tests/spreadsheets.
"""

from __future__ import annotations

import io
import time

import pytest
from openpyxl import Workbook

from survey.instrument.spreadsheets import workbook_guard
from survey.instrument.spreadsheets.workbook_guard import MIB, SURVEY
from survey.instrument.xlsform import read_xlsform, workbook
from survey.tests.spreadsheets.hostile_files import (
    EXTERNAL,
    LAUGHS,
    SHEET,
    with_entities,
)
from survey.tests.workbooks import (
    AGREE,
    SETTINGS,
    as_excel_writes_it,
    draft_items,
    form,
    places,
    read,
    rezipped,
    saved,
)
from survey.tests.workbooks import workbook as book_of

ROWS = [["type", "name", "label"], ["select_one pets", "a", "A?"]]


def refusal(content: bytes) -> str:
    """Return the one problem of a file that is refused as a whole."""
    reading = read_xlsform(content)
    assert reading.draft is None
    assert places(reading.problems) == [("", None, "")]
    return reading.problems[0].reason


def with_sheet(change) -> bytes:
    return rezipped(
        as_excel_writes_it(form(ROWS)),
        lambda name, data: change(data) if name == SHEET else data,
    )


def test_good_file_is_read():
    assert read_xlsform(form(ROWS)).draft
    assert read_xlsform(io.BytesIO(form(ROWS))).draft
    assert read_xlsform(as_excel_writes_it(form(ROWS))).draft == (
        read_xlsform(form(ROWS)).draft
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"type,name,label\ntext,a,A?\n", "not an Excel workbook"),
        (b"<html></html>", "This is a web page"),
        (b"PK" + b"\xff" * 5000, "damaged"),
        (b"PK\x05\x06" + b"\0" * 18, "not an Excel workbook"),
    ],
)
def test_file_that_is_not_a_workbook_is_refused(content: bytes, reason: str):
    assert reason in refusal(content)


def test_long_text_to_which_many_cells_refer_is_refused(monkeypatch):
    label = "${a} " * 2_000
    rows = [["type", "name", "label"], ["text", "a", "A?"]]
    rows += [["text", f"q{n}", label] for n in range(20)]
    content = as_excel_writes_it(form(rows))
    assert read_xlsform(content).draft
    monkeypatch.setattr(workbook, "MAX_CHARACTERS", 100_000)
    assert refusal(content) == "The sheet survey has more than 100,000 characters."


def test_file_above_the_limit_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "large.xlsx"
    path.write_bytes(b"PK" + b"\0" * (SURVEY.file + 5 * MIB))
    reading = read_xlsform(path)
    assert "larger than 10 MB" in reading.problems[0].reason
    assert len(reading.source) == SURVEY.file + 1


# --- Elements ------------------------------------------------------------


def test_document_type_in_any_part_is_refused():
    content = rezipped(
        form(ROWS),
        lambda name, data: (
            b"<!DOCTYPE a []><a/>" if name == "docProps/app.xml" else data
        ),
    )
    assert "docProps/app.xml" in refusal(content)


def test_openpyxl_refuses_entities_too(monkeypatch):
    monkeypatch.setattr(workbook_guard, "_count_elements", lambda *_: 0)
    for prolog in (LAUGHS, EXTERNAL):
        content = with_entities(as_excel_writes_it(form(ROWS)), prolog)
        assert "EntitiesForbidden" in refusal(content)


@pytest.mark.parametrize(
    ("part", "before", "element"),
    [
        (SHEET, b"</sheetData>", b"<row/>"),
        (SHEET, b"</sheetData>", b"<row><c/><c/></row>"),
        ("xl/sharedStrings.xml", b"</sst>", b"<si/>"),
        ("xl/styles.xml", b"</cellXfs>", b"<xf/>"),
    ],
)
def test_too_many_elements_are_refused_before_the_sheets_are_read(
    part, before, element, monkeypatch
):
    content = rezipped(
        as_excel_writes_it(form(ROWS)),
        lambda name, data: (
            data.replace(before, element * (410_000 // element.count(b"/")) + before)
            if name == part
            else data
        ),
    )
    monkeypatch.setattr(workbook, "load_workbook", None)
    assert "more cells, texts or styles" in refusal(content)


# --- Sizes of sheets -----------------------------------------------------


def test_many_formatted_but_empty_rows_are_read():
    rows = b"".join(b'<row r="%d" ht="15"/>' % n for n in range(3, 100_000))
    content = with_sheet(
        lambda data: data.replace(b"</sheetData>", rows + b"</sheetData>")
    )
    assert read_xlsform(content).draft


def test_gap_of_a_million_rows_costs_nothing(monkeypatch):
    book = Workbook()
    sheet = book.active
    sheet.title = "survey"
    for row in ROWS[:1] + [["text", "a", "A?"]]:
        sheet.append(row)
    sheet.cell(1_048_576, 16_384).value = None
    sheet.cell(1_048_576, 16_384).number_format = "0.00"
    settings = book.create_sheet("settings")
    for row in SETTINGS:
        settings.append(row)
    cells = []
    read_cell = workbook._read_cell
    monkeypatch.setattr(
        workbook, "_read_cell", lambda *args: cells.append(args) or read_cell(*args)
    )
    assert read_xlsform(saved(book)).draft
    assert len(cells) == 13


@pytest.mark.parametrize("cell", [(1_048_576, 1), (2, 16_384), (1, 301), (10_001, 3)])
def test_content_beyond_the_limits_is_reported(cell):
    book = Workbook()
    book.active.title = "survey"
    book.active.append(ROWS[0])
    book.active.cell(*cell).value = "far away"
    assert "beyond 10,000 rows or 300 columns" in refusal(saved(book))


def test_list_of_five_thousand_options_is_refused():
    options = [["big", f"o{n}", f"Option {n}"] for n in range(5_000)]
    rows = [ROWS[0], ["select_one big", "a", "A?"]]
    reading = read(rows, [AGREE[0], *options])
    assert places(reading.problems) == [("choices", 1002, "list_name")]
    assert "more than 1,000 options" in reading.problems[0].reason
    assert read(rows, [AGREE[0], *options[:1_000]]).draft


def test_survey_of_more_than_a_thousand_items_is_refused():
    rows = [ROWS[0], *(["text", f"q{n}", "Q?"] for n in range(1_001))]
    assert "more than 1,000 items" in read(rows).problems[0].reason
    assert read(rows[:-1]).draft


def test_deeply_nested_groups_are_refused():
    rows = [ROWS[0], *(["begin group", f"g{n}", "G"] for n in range(500))]
    rows += [["text", "a", "A?"], *(["end group"] for n in range(500))]
    assert "nested more than 20 deep" in read(rows).problems[0].reason


def test_deeply_nested_xml_does_not_crash_the_reader():
    deep = b"<is>" * 100_000 + b"</is>" * 100_000
    content = with_sheet(lambda data: data.replace(b"<v>", deep + b"<v>", 1))
    assert read_xlsform(content)


def test_more_than_fifty_languages_are_refused():
    codes = [f"{a}{b}" for a in "abc" for b in "defghijklmnopqrstuv"]
    rows = [["type", "name", *(f"label::L ({code})" for code in codes)]]
    rows += [["text", "a", *("A?" for _ in codes)]]
    assert "more than 50 languages" in str(read(rows).problems)


# --- Cells ---------------------------------------------------------------


def test_text_that_is_too_long_is_reported():
    book = with_sheet(
        lambda data: data.replace(
            b"</sheetData>",
            b'<row r="3"><c r="C3" t="inlineStr"><is><t>'
            + b"x" * 32_768
            + b"</t></is></c></row></sheetData>",
        )
    )
    reading = read_xlsform(book)
    assert places(reading.problems)[0] == ("survey", 3, "label")
    assert "32,767" in reading.problems[0].reason
    assert len(reading.problems[0].text) < 200


@pytest.mark.parametrize(
    "character", ["_x0000_", "_x0007_", "_x001F_", "_xD800_", "\x85"]
)
def test_control_characters_are_reported(character: str):
    rows = [ROWS[0], ["text", "a", f"A{character}?"]]
    reading = read(rows)
    assert ("survey", 2, "label") in places(reading.problems)
    assert reading.problems[0].text == "A\N{REPLACEMENT CHARACTER}?"


def test_formula_without_a_value_is_reported():
    rows = [ROWS[0], ["text", "a", '=CONCATENATE("A","?")']]
    reading = read(rows)
    assert places(reading.problems)[0] == ("survey", 2, "label")
    assert "formula" in reading.problems[0].reason


def test_formulas_without_a_value_are_named_where_nothing_reads_them():
    sheets = {
        "survey": [[*ROWS[0], "my notes"], ["text", "a", "A?", "=1+1"]],
        "choices": AGREE,
        "settings": SETTINGS,
        "Notes": [["=A2", "plain"], ["=1+1", "kept"]],
        "_private": [["kept"], ["=2+2"]],
    }
    reading = read_xlsform(book_of(sheets))
    assert reading.draft, reading.problems
    formulas = [row for row in reading.warnings if "formula" in row.reason]
    assert set(places(formulas)) == {
        ("survey", 2, "my notes"),
        ("Notes", 1, "A"),
        ("Notes", 2, "A"),
        ("_private", 2, "A"),
    }
    # With a value, they are kept, and nothing is said.
    for name in ("Notes", "_private"):
        sheets[name] = [["kept"], ["also kept"]]
    sheets["survey"][1][3] = 2
    warnings = read_xlsform(book_of(sheets)).warnings
    assert not any("formula" in row.reason for row in warnings)


def test_value_of_a_formula_is_read():
    content = rezipped(
        form([ROWS[0], ["text", "a", '=CONCATENATE("A","?")']]),
        lambda name, data: (
            data.replace(b"<v></v>", b"<v>A?</v>")
            .replace(b"<v />", b"<v>A?</v>")
            .replace(b'<c r="C2"><f>', b'<c r="C2" t="str"><f>')
            if name == SHEET
            else data
        ),
    )
    reading = read_xlsform(content)
    assert reading.draft, reading.problems
    (item,) = reading.draft.items()
    assert item.label == {"en": "A?"}


def test_formula_that_gives_an_empty_text_is_an_empty_cell():
    head = [*ROWS[0], "hint"]
    content = rezipped(
        form([head, ["text", "a", "A?", '=IF(TRUE,"","never")']]),
        lambda name, data: (
            data.replace(b'<c r="D2"><f>', b'<c r="D2" t="str"><f>')
            if name == SHEET
            else data
        ),
    )
    (item,) = draft_items(read_xlsform(content)).values()
    assert item.hint == {}


def test_spreadsheet_error_is_reported():
    rows = [ROWS[0], ["text", "a", "#REF!"]]
    content = rezipped(
        form(rows),
        lambda name, data: data.replace(b't="e"', b't="e"') if name == SHEET else data,
    )
    reading = read_xlsform(content)
    assert places(reading.problems)[0] == ("survey", 2, "label")
    assert "spreadsheet error" in reading.problems[0].reason


def test_spreadsheet_errors_in_ignored_columns_are_ignored():
    head = [*ROWS[0], "my notes", None]
    reading = read([head, ["text", "a", "A?", "=B2", "#REF!"]])
    assert reading.draft, reading.problems
    assert {("survey", 1, "my notes"), ("survey", 2, "E")} <= {
        *places(reading.warnings)
    }


def test_spreadsheet_error_in_a_column_for_choice_filters_is_reported():
    choices = [["list_name", "name", "label", "town"], ["agree", 1, "Yes", "#REF!"]]
    reading = read([ROWS[0], ["select_one agree", "a", "A?"]], choices)
    assert places(reading.problems) == [("choices", 2, "town")]


def test_spreadsheet_error_in_the_headers_is_reported():
    reading = read([[*ROWS[0], "#REF!"], ["text", "a", "A?", "lost"]])
    assert places(reading.problems) == [("survey", 1, "D")]


def test_merged_cells_give_a_warning():
    book = Workbook()
    book.active.title = "survey"
    for row in [*ROWS[:1], ["text", "a", "A?"]]:
        book.active.append(row)
    book.active.merge_cells("C2:D4")
    warnings = read_xlsform(saved(book), name="merged").warnings
    assert any("merged" in warning.reason for warning in warnings)
    assert any(warning.text == "C2:D4" for warning in warnings)


def test_values_without_a_header_give_a_warning():
    reading = read([[*ROWS[0], None], ["text", "a", "A?", "lost"]])
    assert ("survey", 2, "D") in places(reading.warnings)


def test_two_sheets_of_the_same_name_are_refused():
    book = Workbook()
    book.active.title = "survey"
    book.create_sheet("Survey ")
    assert "two sheets named survey" in refusal(saved(book))


def test_references_with_many_blanks_are_read_in_linear_time():
    rows = [ROWS[0], ["text", "a", "${" + " " * 30_000 + "!"]]
    rows += [["text", "b", "${" * 15_000]]
    start = time.process_time()
    assert read(rows).problems
    # Cubic time would be hours.
    assert time.process_time() - start < 20


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b'r="A2"', b'r="AAAAAAA2"'),
        lambda data: data.replace(b'r="A2"', b'r="2A"'),
        lambda data: data.replace(b'<row r="2"', b'<row r="x"'),
        lambda data: data.replace(b"<v>0</v>", b"<v>99999</v>"),
        lambda data: data.replace(b"<v>0</v>", b"<v>-99</v>"),
        lambda data: data.replace(b'<c r="A1" t="s"><v>0</v>', b'<c r="A1"><v>x</v>'),
        lambda data: data[:200],
        lambda data: b"",
        lambda data: b"<a/>",
        lambda data: b"\x00\xff",
    ],
)
def test_damaged_sheet_is_reported(change):
    reading = read_xlsform(with_sheet(change))
    assert reading.draft is None
    assert reading.problems


def test_huge_and_tiny_numbers_are_written_out():
    assert workbook.cell_text(1e400) == "Infinity"
    assert workbook.cell_text(1e22) == "1" + "0" * 22
    assert workbook.cell_text(1e-7) == "0.0000001"
