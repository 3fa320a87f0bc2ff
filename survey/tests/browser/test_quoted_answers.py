"""Labels of options that quote an answer, with and without JavaScript."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import PublishedSurvey, Respondent
from survey.tests.browser.accessibility import violations
from survey.tests.browser.person import Person, stored
from survey.tests.conftest import code_of, enrol, open_now
from survey.tests.workbooks import form

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = ["label::English (en)", "label::Español (es)"]
SURVEY = [
    ["type", "name", *TEXTS, "calculation", "appearance"],
    ["begin group", "first", "Your child", "Su hijo", None, "field-list"],
    ["text", "child", "Your child’s name?", "¿Cómo se llama?", None, None],
    ["end group"],
    ["begin group", "second", "Help", "Ayuda", None, "field-list"],
    ["select_one people", "best", "Who helps most?", "¿Quién ayuda más?", None, None],
    ["begin group", "grid", "They help …", "Ayudan …", None, "table-list"],
    ["select_one people", "home", "at home", "en casa", None, None],
    ["select_one people", "school", "at school", "en la escuela", None, None],
    ["end group"],
    ["end group"],
    ["calculate", "said", None, None, "jr:choice-name(${best}, '${best}')", None],
    ["begin group", "third", "Thanks", "Gracias", None, "field-list"],
    ["note", "thanks", "You chose ${said}.", "Eligió: ${said}.", None, None],
    ["text", "why", "Why, ${child}?", "¿Por qué?", None, None],
    ["end group"],
]
PEOPLE = [
    ["list_name", "name", *TEXTS],
    ["people", "teacher", "${child}’s teacher", "Docente de ${child}"],
    ["people", "other", "Somebody else", "Otra persona"],
]
SETTINGS = [["form_id", "version", "default_language"], ["help", "1", "English (en)"]]
TYPED = "<b>Noor</b> & ${why}"


@pytest.fixture
def published(transactional_db: None) -> PublishedSurvey:
    source = form(SURVEY, PEOPLE, SETTINGS)
    draft = read_xlsform(source).draft
    return publish_survey(survey=import_survey(draft=draft, source=source))


@pytest.fixture
def maya(published: PublishedSurvey, lincoln) -> Respondent:
    return enrol(open_now(published), lincoln, grade="07", language="en")


def sees_labels(page: Page, name: str, rows: int = 3) -> None:
    labels = page.get_by_role("radio", name=name, exact=True)
    expect(labels).to_have_count(rows)


def test_options_are_named_by_an_earlier_answer(device, maya, published):
    person = Person(device().new_page())
    page = person.page
    person.log_in(maya)
    page.fill("#item-child input", TYPED)
    person.next()
    sees_labels(page, f"{TYPED}’s teacher")
    assert violations(page) == []
    page.select_option("#language", "es")
    sees_labels(page, f"Docente de {TYPED}")
    page.get_by_role("radio", name=f"Docente de {TYPED}").first.check()
    person.next()
    expect(page.locator("#item-thanks")).to_have_text(f"Eligió: Docente de {TYPED}.")
    page.select_option("#language", "en")
    expect(page.locator("#item-thanks")).to_have_text(f"You chose {TYPED}’s teacher.")
    expect(page.get_by_role("textbox", name=f"Why, {TYPED}?")).to_be_visible()
    person.sees("saved")
    assert stored(maya, published)["best"] == "teacher"

    # Another name: the answer stays, and its label follows.
    page.click("#back")
    person.waits_until_left(3)
    page.click("#back")
    person.waits_until_left(2)
    page.fill("#item-child input", "Amal")
    person.next()
    sees_labels(page, "Amal’s teacher")
    expect(page.get_by_role("radio", name="Amal’s teacher").first).to_be_checked()
    person.next()
    person.turn()
    page.wait_for_url("**/take/complete/**")
    expect(page.locator("main")).to_contain_text("Amal’s teacher")
    assert "${" not in page.locator("main").inner_text()
    assert stored(maya, published)["best"] == "teacher"


def test_options_are_named_by_an_earlier_answer_without_javascript(
    device, maya, published
):
    page = device(java_script_enabled=False).new_page()
    page.goto("/")
    page.fill("#code", code_of(maya))
    page.click("button[type=submit]")
    page.fill("#item-child input", TYPED)
    page.click("button[value=next]")
    sees_labels(page, f"{TYPED}’s teacher")
    page.get_by_role("radio", name=f"{TYPED}’s teacher").first.check()
    page.click("button[value=next]")
    expect(page.locator("#item-thanks")).to_have_text(f"You chose {TYPED}’s teacher.")
    page.click("button[value=next]")
    page.wait_for_url("**/take/complete/**")
    expect(page.locator("main")).to_contain_text(f"{TYPED}’s teacher")
    assert stored(maya, published)["best"] == "teacher"
