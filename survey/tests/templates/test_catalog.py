"""The shipped templates are surveys without problems, in English and Spanish."""

from __future__ import annotations

import re

import pytest

from survey.instrument.definitions.expressions.evaluation import Context, evaluate
from survey.instrument.drafts.checks import Audience, check_draft, reading_grade
from survey.instrument.drafts.checks.texts import texts_of
from survey.instrument.templates import sheets_of, templates
from survey.instrument.templates.catalog import draft_of, survey_sheets
from survey.instrument.xlsform import read_xlsform
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.reading import read_draft
from survey.tests.workbooks import workbook

KEYS = ["students", "staff", "families"]
each = pytest.mark.parametrize("key", KEYS)
AUDIENCES = {"students": Audience.STUDENTS}
# Of other items: who answers, whether they want to, and what they write.
BESIDE_MEASURES = {
    *("consent", "grade", "child_grade", "relation", "job", "years_here"),
    *("gender", "child_gender", "race", "child_race", "home_language"),
    *("best", "change"),
}


def test_templates_are_listed_with_what_a_person_chooses_by():
    listed = {template.key: template for template in templates()}
    assert list(listed) == KEYS
    students = listed["students"]
    assert students.title == {"en": "My school", "es": "Mi escuela"}
    assert students.description["es"].startswith("Para estudiantes")
    assert (students.pages, students.questions, students.minutes) == (10, 42, 8)
    assert [listed[key].questions for key in KEYS] == [42, 36, 26]


@each
def test_a_template_is_read_with_nothing_to_say(key):
    findings = Findings()
    draft = read_draft(survey_sheets(sheets_of(key)), "", findings)
    assert (findings.problems, findings.warnings) == ([], [])
    assert [language["code"] for language in draft.languages] == ["en", "es"]


def test_a_template_that_pyxform_refuses_would_be_noticed():
    sheets = sheets_of("staff")
    header, *_ = sheets["survey"]
    sheets["survey"].append(["begin_group", "never_ended"] + [""] * (len(header) - 2))
    findings = Findings()
    read_draft(survey_sheets(sheets), "", findings)
    assert findings.problems


@each
def test_a_template_is_the_same_as_a_workbook(key):
    reading = read_xlsform(workbook(sheets_of(key)))
    assert (reading.problems, reading.warnings) == ([], [])
    draft = draft_of(sheets_of(key))
    assert texts(reading.draft) == texts(draft)
    assert reading.draft.measures == draft.measures


def texts(draft):
    return [text.texts for text in texts_of(draft)]


@each
def test_every_text_is_there_in_both_languages(key):
    draft = draft_of(sheets_of(key))
    measures = [*draft.measures["essentials"], *draft.measures["measures"]]
    everything = [
        *texts(draft),
        *(measure[name] for measure in measures for name in ("label", "description")),
    ]
    for text in filter(None, everything):
        assert text.keys() == {"en", "es"}, text
        assert all(text.values())


@each
def test_each_item_is_in_a_measure_or_is_known_not_to_be(key):
    draft = draft_of(sheets_of(key))
    measured = {
        item["name"]
        for measure in draft.measures["measures"]
        for item in measure["items"]
    }
    unmeasured = {item.name for item in draft.items() if item.is_answerable} - measured
    assert unmeasured <= BESIDE_MEASURES
    assert len(measured) >= 20


@each
def test_the_items_of_a_measure_run_in_one_direction(key):
    draft = draft_of(sheets_of(key))
    assert {measure["direction"] for measure in draft.measures["measures"]} == {
        "positive"
    }
    scored = [item for m in draft.measures["measures"] for item in m["items"]]
    assert not any(item["reversed"] for item in scored)


@each
def test_pages_are_short_and_little_is_required(key):
    draft = draft_of(sheets_of(key))
    for page in draft.pages:
        assert sum(item.is_answerable for item in page.items()) <= 6
    required = [item.name for item in draft.items() if "required" in item.rules]
    assert required in (["consent"], [])


@each
def test_race_is_several_groups_or_no_answer_at_all(key):
    [race] = [item for item in draft_of(sheets_of(key)).items() if "race" in item.name]
    assert race.kind == "select_multiple"

    def is_valid(value):
        return evaluate(race.rules["constraint"], Context({race.name: value}))

    assert is_valid("asian white")
    assert is_valid("no_answer")
    assert not is_valid("asian no_answer")


@each
def test_the_checks_before_publishing_find_nothing(key):
    checks = check_draft(
        draft_of(sheets_of(key)), audience=AUDIENCES.get(key, Audience.ADULTS)
    )
    assert checks == []


def test_students_can_read_theirs_from_grade_4_on():
    read = texts(draft_of(sheets_of("students")))
    for code, grade in (("en", 4), ("es", 5)):
        texts_in_language = [text[code] for text in read if code in text]
        assert reading_grade(texts_in_language, code) <= grade


@each
def test_spanish_speaks_to_students_as_tu_and_to_adults_as_usted(key):
    """A sample: forms that only one of the two has."""
    spanish = " ".join(text["es"] for text in texts(draft_of(sheets_of(key))) if text)
    informal = re.search(r"\b(?:tú|tu|tus|estás|puedes|eres|marca|escribas)\b", spanish)
    formal = re.search(r"\b(?:usted|su escuela|está con|puede dejar|marque)\b", spanish)
    if key == "students":
        assert informal
        assert not formal
    else:
        assert formal
        assert not informal


def test_the_introduction_says_how_long_it_takes():
    for template in templates():
        draft = draft_of(sheets_of(template.key))
        intro = next(item for item in draft.items() if item.name == "intro")
        assert f"about {template.minutes} minutes" in intro.label["en"]
        assert f"unos {template.minutes} minutos" in intro.label["es"]


def test_an_unknown_template_is_an_error_and_never_a_path():
    with pytest.raises(KeyError):
        sheets_of("../templates/students")
