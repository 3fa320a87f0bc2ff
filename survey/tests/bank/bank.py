"""Surveys with questions for the bank, for its tests."""

from __future__ import annotations

from accounts.models import District, User
from survey.instrument.bank.questions import add_questions
from survey.instrument.drafts.commands import CommandRefused
from survey.instrument.drafts.store import change_draft, load_book
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import BankQuestion, Survey
from survey.tests.workbooks import workbook

HEADER = ["type", "name", "label::English (en)", "label::Español (es)", "relevant"]
SAFE = ["select_one agree", "safe", "I feel safe here.", "Me siento seguro aquí."]
CHOICES = [
    ["list_name", "name", "label::English (en)", "label::Español (es)"],
    ["agree", "1", "Disagree", "En desacuerdo"],
    ["agree", "2", "Agree", "De acuerdo"],
]
OTHERS = [["list_name", "name", "label::English (en)"], ["other", "1", "Disagree"]]
MEASURES = [
    ["type", "name", "label::English (en)", "essential", "items"],
    ["essential", "climate", "Climate", None, None],
    ["measure", "safety", "Safety", "climate", "safe -afraid calm"],
]
STATE = [
    HEADER,
    SAFE,
    ["select_one agree", "afraid", "I am afraid here.", "Tengo miedo aquí."],
    ["select_one agree", "calm", "It is calm here.", "Hay calma aquí."],
    ["integer", "age", "Your age?", "¿Su edad?"],
    ["text", "why", "Why do you say ${safe}?", "¿Por qué dice ${safe}?"],
]
OWN = [
    ["type", "name", "label::English (en)", "relevant", "required"],
    ["begin_group", "start", "Start"],
    ["text", "first", "Your first name?"],
    ["end_group"],
]


def survey_of(
    rows: list[list[str]],
    name: str = "own",
    *,
    choices: list[list[str]] | None = None,
    measures: list[list[str]] | None = None,
    district: District | None = None,
    language: str = "en",
) -> Survey:
    sheets = {
        "survey": rows,
        "choices": choices or CHOICES,
        "settings": [["form_id", "version", "default_language"], [name, "1", language]],
        "measures": measures or [["type", "name"]],
    }
    content = workbook(sheets)
    reading = read_xlsform(content)
    assert reading.draft, reading.problems
    return import_survey(draft=reading.draft, source=content, district=district)


def bank(by: User, *names: str) -> list[BankQuestion]:
    """Fill the bank from a survey of the state."""
    survey = survey_of(STATE, "state", measures=MEASURES)
    return add_questions(survey=survey, names={n: n for n in names}, by=by)


def change(survey: Survey, command, by: User):
    result = change_draft(survey, command, action="set", by=by)
    survey.refresh_from_db()
    return result


def refused(survey: Survey, command, by: User) -> str:
    """Return why a command is refused, or "" if it is not."""
    try:
        change(survey, command, by)
    except CommandRefused as error:
        return str(error)
    return ""


def row_of(survey: Survey, name: str) -> dict[str, str]:
    """Return a row of a draft by the headers of its cells, and its key."""
    sheet = load_book(survey).sheet("survey")
    [row] = [row for row in sheet.rows if sheet.value(row, "name") == name]
    cells = {sheet.columns[n - 1]: text for n, text in row.cells.items() if n}
    return {"key": row.key, **cells}


def key_of(survey: Survey, name: str) -> str:
    return row_of(survey, name)["key"]
