"""A draft that came as a workbook leaves as the same workbook with its changes."""

from __future__ import annotations

import datetime
import io
import re
from typing import Any

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.comments import Comment
from openpyxl.styles import PatternFill
from openpyxl.worksheet.datavalidation import DataValidation

from survey.instrument.drafts import commands, groups, source_workbook
from survey.instrument.drafts.exporting import workbook_of
from survey.instrument.drafts.source_workbook import workbook_like
from survey.instrument.drafts.store import book_of_workbook
from survey.instrument.drafts.workbook import DraftBook
from survey.instrument.xlsform import read_xlsform
from survey.instrument.xlsform.languages import ENGLISH
from survey.tests.drafts.test_exporting import definition_in
from survey.tests.workbooks import rezipped, saved

YELLOW = PatternFill("solid", fgColor="FFFF00")
DAY = datetime.datetime(2026, 1, 2)


def formatted() -> bytes:
    """Return a workbook as a careful author keeps it."""
    file = Workbook()
    survey = file.active
    survey.title = "Survey"
    for row in (
        ["type", "name", "label", "relevant", "seen on"],
        ["begin_group", "page", "Page"],
        ["select_one agree", "calm", " It is calm. ", None, DAY],
        ["text", "why", "Why?", " ${calm} = '1'"],
        ["end_group"],
        ["note", "end", "Thanks"],
    ):
        survey.append(row)
    survey["C3"].fill = YELLOW
    survey["C3"].comment = Comment("Agreed with Ann", "Ann")
    survey.column_dimensions["C"].width = 77
    survey.row_dimensions[3].height = 44
    survey.freeze_panes = "C2"
    survey.auto_filter.ref = "A1:E6"
    choices = file.create_sheet("choices")
    for row in (["list_name", "name", "label"], ["agree", 1, "No"], ["agree", 2, "Y"]):
        choices.append(row)
    choices.add_data_validation(DataValidation("list", formula1='"a,b"', sqref="A2:A9"))
    notes = file.create_sheet("Notes")
    notes.append(["sum", 10**15, True])
    notes["A2"] = "=B1*2"
    notes.merge_cells("A4:B4")
    notes.sheet_state = "hidden"
    return saved(file)


def changed(content: bytes, *commands_: Any) -> Workbook:
    book = book_of_workbook(content)
    for command in commands_:
        command(book)
    exported = workbook_like(book, content)
    exports = [
        definition_in(read_xlsform(file, name="calm"))
        for file in (exported, workbook_of(book))
    ]
    assert exports[0] == exports[1]
    return load_workbook(io.BytesIO(exported))


def set_label(key: str, text: str) -> Any:
    return lambda book: commands.set_text(
        book, "survey", key, field="label", language=ENGLISH, text=text
    )


def values_of(file: Workbook) -> dict[tuple[str, str], object]:
    return {
        (sheet.title, cell.coordinate): (cell.value, cell.data_type)
        for sheet in file
        for cells in sheet.iter_rows()
        for cell in cells
        if cell.value is not None
    }


def test_one_touched_text_changes_one_cell() -> None:
    before = load_workbook(io.BytesIO(formatted()))
    after = changed(formatted(), set_label("r4", "Why is that?"))
    old, new = values_of(before), values_of(after)
    assert {place for place in old | new if old.get(place) != new.get(place)} == {
        ("Survey", "C4")
    }
    survey = after["Survey"]
    assert survey["C4"].value == "Why is that?"
    assert survey["C3"].fill.fgColor.rgb == YELLOW.fgColor.rgb
    assert survey["C3"].comment.text == "Agreed with Ann"
    assert survey["E3"].value == DAY and survey["D4"].value == " ${calm} = '1'"
    assert survey.column_dimensions["C"].width == 77
    assert (survey.freeze_panes, survey.auto_filter.ref) == ("C2", "A1:E6")
    assert [str(row.sqref) for row in after["choices"].data_validations.dataValidation]
    assert after["Notes"].sheet_state == "hidden"
    assert after["Notes"]["A2"].value == "=B1*2"
    assert [str(area) for area in after["Notes"].merged_cells.ranges] == ["A4:B4"]


def test_rows_that_move_take_their_looks_along() -> None:
    def command(book: DraftBook) -> None:
        commands.move_rows(book, "r3", after="r4")
        commands.delete_rows(book, "r6")
        key = commands.add_question(book, after="r3", kind="integer", name="age")
        set_label(key, "How old are you?")(book)
        groups.begin_section(book, "r2")

    survey = changed(formatted(), command)["Survey"]
    names = [survey.cell(row, 2).value for row in range(1, survey.max_row + 1)]
    assert names == ["name", "section", "page", "why", "calm", "age", None, None]
    assert survey["C5"].fill.fgColor.rgb == YELLOW.fgColor.rgb
    assert survey["C5"].comment.text == "Agreed with Ann"
    assert survey["C5"].value == " It is calm. " and survey["E5"].value == DAY
    assert survey.row_dimensions[5].height == 44
    assert survey["C3"].fill.fill_type is None and survey["C3"].comment is None


def test_a_new_language_is_a_new_column() -> None:
    def command(book: DraftBook) -> None:
        spanish = commands.add_language(book, "Español (es)")
        commands.set_text(
            book, "survey", "r3", field="label", language=spanish, text="=Calma"
        )

    survey = changed(formatted(), command)["Survey"]
    assert survey["F1"].value == "label::Español (es)"
    with_text = survey["F3"]
    assert with_text.value == "=Calma" and survey["E3"].value == DAY


def test_a_formula_leaves_as_its_value_where_surveys_are_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """openpyxl writes formulas without values, which the reader would refuse."""
    number = re.compile(rb'<c r="B2"[^>]*><v>1</v></c>')
    computed = b'<c r="B2"><f>0+1</f><v>1</v></c>'
    content = rezipped(formatted(), lambda _name, part: number.sub(computed, part))
    assert load_workbook(io.BytesIO(content))["choices"]["B2"].value == "=0+1"
    after = changed(content, set_label("r4", "Why is that?"))
    assert after["choices"]["B2"].value == 1
    assert after["Survey"]["C3"].fill.fgColor.rgb == YELLOW.fgColor.rgb
    assert not caplog.records


def test_what_openpyxl_breaks_is_written_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(source_workbook, "_changed", lambda *_: b"PK no workbook")
    book = book_of_workbook(formatted())
    set_label("r4", "Why is that?")(book)
    exported = workbook_like(book, formatted())
    assert load_workbook(io.BytesIO(exported))["survey"]["C4"].value == "Why is that?"
    assert "written anew" in caplog.text
