"""Surveys leave as workbooks that are read as the same survey."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from openpyxl import load_workbook

from accounts.models import User
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.definitions.schema import SurveyDefinition, load_definition
from survey.instrument.drafts import commands
from survey.instrument.drafts.corrections import start_correction
from survey.instrument.drafts.drafting import exported_workbook
from survey.instrument.drafts.exporting import (
    book_of_definition,
    digest_of_content,
    workbook_of,
)
from survey.instrument.drafts.measures import digest_of, save_essential
from survey.instrument.drafts.reading import definition_of
from survey.instrument.drafts.store import book_of_workbook, change_draft
from survey.instrument.drafts.workbook import DraftBook
from survey.instrument.xlsform import Reading, import_survey, read_xlsform
from survey.instrument.xlsform.languages import ENGLISH
from survey.models import Survey
from survey.tests.workbooks import form, workbook
from survey.tests.xlsform.test_import_survey import climate
from survey.tests.xlsform.test_random_workbooks import CELLS, WHOLE

DEMO = Path(settings.BASE_DIR) / "survey/simulation/demo"
# What a definition has besides texts, in a survey of a few rows.
SURVEY = [
    ["type", "name", "label", "label::Español (es)", "relevant", "calculation",
     "constraint", "constraint_message", "required", "choice_filter", "appearance",
     "default", "read_only", "parameters", "hint"],
    ["calculate", "year", None, None, None, "2027"],
    ["begin_group", "first", "First", "Primera", "${year} > 1", *[None] * 5,
     "field-list"],
    ["note", None, "Welcome", "Hola"],
    ["select_one town", "town", "Town?", "¿Ciudad?", *[None] * 5, "region = ${area}",
     "minimal"],
    ["begin_group", "heads", "A heading", "Un título", "${town} = 't1'"],
    ["select_one agree or_other", "pet", "Pet?", "¿Mascota?", "${area} = '1'"],
    ["range", "much", "How much?", "¿Cuánto?", *[None] * 9, "start=0 end=5 step=0.5"],
    ["end_group"],
    ["text", "after", "After the heading", "Después"],
    ["end_group"],
    ["hidden", "area", None, None, *[None] * 7, "1"],
    ["begin_group", "grid", "How true?", "¿Cierto?", *[None] * 6, "table-list"],
    ["select_one agree", "safe", "Safe", "Seguro", *[None] * 4, "yes"],
    ["select_one agree", "calm", "Calm", "Tranquilo"],
    ["end_group"],
    ["integer", "age", "Age", "Edad", None, None, ". > 3 and . < 20", "Too old",
     "${safe} = '1'", *[None] * 5, "In years"],
    ["select_multiple agree", "many", "Many", "Muchos", *[None] * 9,
     "randomize=true seed=5"],
    ["text", "shown", "Result", "Resultado", None, "concat(${age}, ' years')",
     *[None] * 6, "yes"],
    ["text", "why", "Why?", "¿Por qué?", *[None] * 6, "multiline", "${shown}"],
    ["datetime", "moment", "When?", "¿Cuándo?"],
    ["percentage", "share", "Share", "Parte"],
    ["acknowledge", "ok", "Agreed", "De acuerdo"],
]  # fmt: skip
CHOICES = [
    ["list_name", "name", "label", "label::Español (es)", "region"],
    ["agree", 1, "Yes", "Sí"],
    ["agree", 2, "No", "No"],
    ["town", "t1", "One", "Uno", "1"],
    ["town", "t2", "Two", "Dos", "2"],
]


def definition_in(reading: Reading) -> SurveyDefinition:
    assert reading.draft, [str(problem) for problem in reading.problems]
    return definition_of(reading.draft)


def written_again(reading: Reading) -> Reading:
    """Write what was read from its definition, and read that."""
    assert reading.draft
    book = book_of_definition(definition_of(reading.draft), reading.draft.measures)
    return read_xlsform(workbook_of(book))


def cells_of(content: bytes) -> dict[str, list[tuple[object, ...]]]:
    book = load_workbook(io.BytesIO(content))
    return {sheet.title: [*sheet.iter_rows(values_only=True)] for sheet in book}


@pytest.mark.parametrize("content", [form(SURVEY, CHOICES), climate()])
def test_a_definition_is_written_as_a_workbook_of_the_same_survey(
    content: bytes,
) -> None:
    reading = read_xlsform(content)
    copy = written_again(reading)
    digests = {digest_of_content(definition_in(side)) for side in (reading, copy)}
    assert len(digests) == 1
    assert not copy.problems


@pytest.mark.parametrize("name", ["students", "teachers", "parents"])
def test_surveys_of_the_demonstration_stay_the_same(name: str) -> None:
    reading = read_xlsform(DEMO / f"{name}.xlsx")
    copy = written_again(reading)
    first, second = definition_in(reading), definition_in(copy)
    assert digest_of_content(first) == digest_of_content(second)
    assert reading.draft and copy.draft
    assert reading.draft.measures == copy.draft.measures


def test_the_digest_is_that_of_the_content_without_ids() -> None:
    definition = definition_in(read_xlsform(form(SURVEY, CHOICES)))
    digest = digest_of_content(definition)
    definition["items"]["safe"]["id"] += 1000
    assert digest_of_content(definition) == digest
    definition["items"]["safe"]["label"]["es"] = "A salvo"
    assert digest_of_content(definition) != digest


@hypothesis_settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["survey", "choices", "settings"]),
            st.integers(0, 12),
            st.integers(0, 8),
            CELLS,
        ),
        max_size=6,
    )
)
def test_any_cells_leave_as_they_came(
    changes: list[tuple[str, int, int, object]],
) -> None:
    sheets = {name: [[*row] for row in rows] for name, rows in WHOLE.items()}
    for name, row, column, value in changes:
        rows = sheets[name]
        cells = rows[row % len(rows)]
        cells[column % len(cells)] = value
    content = workbook(sheets)
    reading = read_xlsform(content)
    if reading.draft:
        exported = workbook_of(book_of_workbook(content))
        assert definition_in(read_xlsform(exported)) == definition_in(reading)
        copy = definition_in(written_again(reading))
        assert digest_of_content(copy) == digest_of_content(definition_in(reading))


NOTES = {
    "survey": [
        ["type", "name", "label", "our notes"],
        ["text", "a", "A", "ask Ann"],
        [],
        ["note", None, "B", "#REF!"],
    ],
    "Ideas of ours": [["of", None, "ours"], [1, None, "+1"]],
    "settings": [["form_title"], ["Two"]],
}


def imported(content: bytes, name: str = "two") -> Survey:
    reading = read_xlsform(content, name=name)
    assert reading.draft, reading.problems
    return import_survey(
        draft=reading.draft, source=content, source_name=f"{name}.xlsx"
    )


def set_first_label(survey: Survey, text: str, name: str = "") -> None:
    def command(book: DraftBook) -> None:
        sheet = book.sheet("survey")
        rows = [row for row in sheet.rows if name in ("", sheet.value(row, "name"))]
        key = rows[0].key
        commands.set_text(
            book, "survey", key, field="label", language=ENGLISH, text=text
        )

    change_draft(survey, command, action="set_text", by=None)
    survey.refresh_from_db()


@pytest.mark.django_db
def test_an_edited_draft_is_exported_with_all_that_nobody_touched() -> None:
    content = workbook({**NOTES})
    survey = imported(content)
    set_first_label(survey, "=A1 or _x0041_")
    exported = cells_of(exported_workbook(survey))
    assert [*exported] == ["survey", "Ideas of ours", "settings"]
    assert exported["survey"] == [
        ("type", "name", "label", "our notes"),
        # Excel would show A for what is not escaped.
        ("text", "a", "=A1 or _x005F_x0041_", "ask Ann"),
        (None, None, None, None),
        ("note", None, "B", "#REF!"),
    ]
    assert exported["Ideas of ours"] == [("of", None, "ours"), (1, None, "+1")]
    # The name was that of the file, which may be another one now.
    assert exported["settings"] == [
        ("form_title", "form_id", "version"),
        ("Two", "two", "1"),
    ]


@pytest.mark.django_db
def test_no_cell_of_a_workbook_runs_as_a_formula() -> None:
    survey = imported(workbook({**NOTES}))
    set_first_label(survey, "=HYPERLINK(1)")
    book = load_workbook(io.BytesIO(exported_workbook(survey)))
    kinds = {
        cell.data_type for sheet in book for row in sheet for cell in row if cell.value
    }
    # openpyxl calls a text that begins with = a formula, and it is none.
    with zipfile.ZipFile(io.BytesIO(exported_workbook(survey))) as parts:
        sheets = [name for name in parts.namelist() if "worksheets/" in name]
        assert all(b"<f>" not in parts.read(name) for name in sheets)
    assert kinds == {"s", "n", "e"}


@pytest.mark.django_db
def test_a_correction_without_a_workbook_leaves_as_one() -> None:
    published = publish_survey(survey=imported(form(SURVEY, CHOICES)))
    author = User.objects.create(email="author@example.org")
    draft = start_correction(corrects=published, by=author)
    set_first_label(draft, "Calm", "safe")
    exported = read_xlsform(exported_workbook(draft))
    original = load_definition(published.definition)
    original["items"]["safe"]["label"]["en"] = "Calm"
    original["version"] = draft.version
    written = definition_in(exported)
    assert digest_of_content(written) == digest_of_content(original)


@pytest.mark.django_db
def test_measures_that_were_changed_here_are_exported() -> None:
    content = (DEMO / "students.xlsx").read_bytes()
    survey = imported(content)
    measures = measures_of(survey)
    assert measures
    essential = {**measures["essentials"][0], "label": {"en": "Another name"}}
    save_essential(
        survey=survey,
        name=measures["essentials"][0]["name"],
        essential=essential,  # type: ignore[typeddict-item]
        seen=digest_of(measures),
        by=User.objects.create(email="author@example.org"),
    )
    draft = read_xlsform(exported_workbook(survey)).draft
    assert draft and draft.measures
    assert draft.measures["essentials"][0]["label"] == {"en": "Another name"}


@pytest.mark.django_db
def test_a_survey_is_exported_by_a_command(tmp_path: Path) -> None:
    survey = imported((DEMO / "students.xlsx").read_bytes())
    file = tmp_path / "students.xlsx"
    call_command("export_survey", survey.name, output=file)
    assert definition_in(read_xlsform(file)) == definition_in(
        read_xlsform(DEMO / "students.xlsx")
    )
    file = tmp_path / "students.json"
    call_command("export_survey", survey.name, format="json", output=file)
    definition = json.loads(file.read_text())
    assert (definition["name"], definition["version"]) == (survey.name, survey.version)
    with pytest.raises(CommandError, match="There is no survey nothing"):
        call_command("export_survey", "nothing", output=file)
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("export_survey", survey.name, output=tmp_path)
