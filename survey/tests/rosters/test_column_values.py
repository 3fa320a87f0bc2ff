"""Choose columns: the unknown values of the chosen ones are asked for."""

from __future__ import annotations

import pytest

from survey.fieldwork.administrations import subgroup_label
from survey.models import Identity, RosterUpload
from survey.people.rosters.column_choices import ColumnSamples
from survey.tests.rosters.oneroster.archives import (
    CLASS_FILES,
    DEMOGRAPHICS,
    VERSION_11,
    archive,
)
from survey.tests.rosters.roster_console import counts, errors_of, person, reasons

pytestmark = pytest.mark.django_db

HEADER = "Kennung,Haus,Stufe,Level,Zustand,Art,Sprache"
ROWS = (
    "1,lincoln,7,Upper,here,Kid,Spanisch",
    "2,lincoln,8,Lower,gone,Kid,Englisch",
    "3,lincoln,8,7,here,Coach,es",
)
COLUMNS = {"external_id": "Kennung", "school": "Haus"}


def columns_page(upload):
    return f"/console/rosters/{upload.pk}/columns/"


@pytest.fixture
def dana(staff, console_of):
    return console_of(staff.dana)


@pytest.fixture
def asked(administration, dana):
    upload = dana.upload(administration, HEADER, *ROWS, complete_for="changes")
    assert upload.state == "mapping"
    return upload


def questions(response):
    """Return the values that the page asks for, by field of the form."""
    form = response.context["form"]
    assert {row.name for row in form.value_questions} <= form.errors.keys()
    return {(row.field, row.value): row.name for row in form.value_questions}


def answer(dana, upload, columns, **answers):
    """Choose columns, and answer what is asked then."""
    response = dana.post(columns_page(upload), **columns)
    assert response.status_code == 200
    names = questions(response)
    assert {value for _, value in names} == answers.keys()
    given = {name: answers[value] for (_, value), name in names.items()}
    response = dana.post(columns_page(upload), **columns, **given)
    assert response.status_code == 302, errors_of(response)
    upload.refresh_from_db()


def test_unknown_grades_of_another_column_are_asked_before_the_dry_run(dana, asked):
    columns = {**COLUMNS, "grade": "Level"}
    response = dana.post(columns_page(asked), **columns)
    assert "Grade “Upper”" in response.content.decode()
    asked.refresh_from_db()
    assert (asked.state, asked.report) == ("mapping", {})
    answer(dana, asked, columns, Upper="08", Lower="blank")
    assert (asked.state, counts(asked)) == ("checked", {"added": 3}), reasons(asked)
    dana.confirm(asked)
    assert [person(n).grade for n in "123"] == ["08", "", "07"]


@pytest.mark.parametrize(
    ("column", "header", "answers"),
    [
        ("status", "Zustand", {"here": "active", "gone": "left"}),
        ("role", "Art", {"Kid": "student", "Coach": "other"}),
        ("language", "Sprache", {"Spanisch": "es", "Englisch": "blank"}),
    ],
)
def test_values_of_each_field_are_asked_for(dana, asked, column, header, answers):
    answer(dana, asked, {**COLUMNS, column: header}, **answers)
    assert asked.state == "checked", asked.message
    assert not asked.rejected
    assert asked.layout["values"][column] == {
        value.casefold(): meaning.replace("blank", "")
        for value, meaning in answers.items()
    }


def test_answers_are_shown_again_and_can_be_changed(dana, asked):
    columns = {**COLUMNS, "grade": "Level"}
    answer(dana, asked, columns, Upper="08", Lower="blank")
    form = dana.get(columns_page(asked)).context["form"]
    shown = {row.value: form[row.name].value() for row in form.value_questions}
    assert shown == {"Upper": "08", "Lower": "blank"}
    # A column without unknown values asks for nothing, and forgets these.
    response = dana.post(columns_page(asked), **{**COLUMNS, "grade": "Stufe"})
    assert response.status_code == 302
    asked.refresh_from_db()
    assert asked.layout["values"].get("grade", {}) == {}
    assert counts(asked) == {"added": 3}


def test_an_answer_about_one_column_is_none_about_another(dana, asked):
    response = dana.post(columns_page(asked), **COLUMNS, status="Zustand")
    names = questions(response).values()
    meant = dict.fromkeys(names, "active")
    response = dana.post(columns_page(asked), **COLUMNS, status="Art", **meant)
    assert {value for _, value in questions(response)} == {"Kid", "Coach"}


def test_without_stored_values_the_rows_would_be_rejected(dana, asked):
    options = ColumnSamples.of(asked).options
    without_values = {key: some for key, some in options.items() if ":" not in key}
    samples = {**asked.samples, "options": without_values}
    RosterUpload.objects.update(samples=samples)
    dana.post(columns_page(asked), **{**COLUMNS, "grade": "Level"})
    asked.refresh_from_db()
    assert (asked.state, asked.rejected) == ("checked", 2)


def test_suggested_columns_ask_as_before(administration, dana):
    rows = [f"{n},lincoln,{'77' if n else '7'}" for n in range(3)]
    upload = dana.upload(administration, "student id,school,grade", *rows[:2])
    form = dana.get(columns_page(upload)).context["form"]
    # A single unknown grade is a mistake in its row.
    assert form["grade"].value() == "grade" and not form.value_questions


def test_control_characters_in_another_column_are_no_error(administration, dana):
    rows = ("1,lincoln,a\x01b", "2,lincoln,x")
    upload = dana.upload(administration, "Kennung,Haus,Was", *rows)
    for column in ("grade", "role", "status", "language"):
        response = dana.post(columns_page(upload), **COLUMNS, **{column: "Was"})
        assert response.status_code == 200
        assert len(response.context["form"].value_questions) == 2


def test_values_of_passwords_are_not_stored(administration, dana):
    upload = dana.upload(
        administration, "Kennung,Haus,password", "1,lincoln,hunter2", "2,lincoln,x"
    )
    assert "lincoln" in str(upload.samples["options"])
    assert "hunter2" not in str(upload.samples)
    form = dana.get(columns_page(upload)).context["form"]
    password = list(form.file_columns())[2]
    assert list(password.cells) == ["", ""] and not password.can_be_used


# Optional fields ----------------------------------------------------------------


@pytest.fixture
def of_oneroster(administration, dana):
    """A OneRoster ZIP with demographics, of which every column is known."""
    files = VERSION_11 | CLASS_FILES | {"demographics": DEMOGRAPHICS}
    return dana.upload(
        administration, content=archive(files).getvalue(), name="export.zip"
    )


def test_subgroups_have_readable_labels(dana, of_oneroster):
    page = dana.get(columns_page(of_oneroster)).content.decode()
    assert "Subgroup: Two or more races" in page
    assert "Subgroup: Asian" in page
    assert subgroup_label("hasIEP") == "Has IEP"
    assert subgroup_label("gender") == "Gender"
    assert subgroup_label("White") == "White"
    assert subgroup_label("Title I") == "Title I"


def test_optional_fields_are_chosen_like_the_others(dana, asked):
    dana.post(columns_page(asked), **COLUMNS, grade="Stufe", classroom="Level")
    asked.refresh_from_db()
    dana.confirm(asked)
    assert Identity.objects.count() == 3
    assert person("1").classroom == "Upper"
