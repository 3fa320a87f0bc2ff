"""WCAG 2.1 AA for respondents: every item type, keyboard only, small screens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey
from survey.models import PublishedSurvey, Respondent
from survey.tests.browser.accessibility import (
    check,
    quick_axe,
    scrolls_sideways,
    violations,
    violations_on,
)
from survey.tests.browser.conftest import LAPTOP, PHONE, TABLET
from survey.tests.browser.person import Person
from survey.tests.conftest import code_of, enrol, open_now
from survey.tests.workbooks import form, read

# The look of a page does not depend on the database.
pytestmark = pytest.mark.django_db(transaction=True)

# type, name, English, Arabic, hint, appearance, required, constraint, parameters
SURVEY = [
    ["type", "name", "label::English (en)", "label::العربية (ar)", "hint::English (en)"]
    + [
        "appearance",
        "required",
        "constraint",
        "parameters",
        "guidance_hint::English (en)",
    ],
    ["begin group", "choices", "Choices", "اختيارات", None, "field-list"],
    ["note", "intro", "Please read **this**.\nThen begin.", "اقرأ هذا.", None],
    ["select_one agree", "radio", "I like it here.", "أحب المكان هنا.", "As a rule."]
    + [None, "yes", None, None, "Think of this week."],
    ["select_one agree", "likert", "It is quiet.", "المكان هادئ.", None, "likert"],
    ["select_one agree", "minimal", "It is warm.", "المكان دافئ.", None, "minimal"],
    ["select_multiple pets or_other", "pets", "Your pets?", "حيواناتك؟", None],
    ["select_one agree", "mixed", "Mixed order.", "ترتيب عشوائي.", None]
    + [None, None, None, "randomize=true"],
    ["acknowledge", "promise", "I promise.", "أعد بذلك.", None],
    ["end group"],
    ["begin group", "typed", "Typing", "كتابة", None, "field-list"],
    ["text", "short", "Your name for it?", "ما اسمه؟", "Any name."],
    [
        "text",
        "long",
        "Tell us about ${short}.",
        "حدثنا عن ${short}.",
        None,
        "multiline",
    ],
    ["integer", "whole", "How many?", "كم عددها؟", None, None, None, ". < 10"],
    ["decimal", "part", "How far?", "كم تبعد؟", None],
    ["range", "slide", "How sure?", "ما مدى تأكدك؟", None, None, None, None]
    + ["start=0 end=10 step=1"],
    ["date", "day", "Which day?", "أي يوم؟", None],
    ["time", "hour", "What time?", "أي ساعة؟", None],
    ["dateTime", "moment", "When?", "متى؟", None],
    ["end group"],
    ["begin group", "grids", "Grids", "جداول", None, "field-list"],
    ["select_one agree", "stem", "Do you agree?", "هل توافق؟", None, "label"],
    ["select_one agree", "row1", "Teachers listen.", "يصغي المعلمون.", None]
    + ["list-nolabel"],
    ["select_one agree", "row2", "Students listen.", "يصغي الطلاب.", None]
    + ["list-nolabel", "yes"],
    ["begin group", "table", "And these?", "وهذه؟", None, "table-list"],
    ["select_one agree", "row3", "Lunch is good.", "الغداء جيد.", None],
    ["select_one agree", "row4", "The yard is big.", "الساحة كبيرة.", None],
    ["end group"],
    ["end group"],
]
CHOICES = [
    ["list_name", "name", "label::English (en)", "label::العربية (ar)"],
    *(
        ["agree", n, english, arabic]
        for n, english, arabic in (
            (1, "Strongly disagree", "لا أوافق بشدة"),
            (2, "Disagree", "لا أوافق"),
            (3, "Agree", "أوافق"),
            (4, "Strongly agree", "أوافق بشدة"),
        )
    ),
    ["pets", "cat", "Cat", "قطة"],
    ["pets", "dog", "Dog", "كلب"],
]
SETTINGS = [
    ["form_title", "form_id", "version", "default_language"],
    ["Every type", "every_type", "1", "English (en)"],
]
TOTAL = 3


@pytest.fixture
def published(transactional_db: None) -> PublishedSurvey:
    reading = read(SURVEY, CHOICES, SETTINGS)
    assert reading.draft, [str(problem) for problem in reading.problems]
    content = form(SURVEY, CHOICES, SETTINGS)
    return publish_survey(
        survey=import_survey(draft=reading.draft, source_name="x", source=content)
    )


@pytest.fixture
def maya(published: PublishedSurvey, lincoln) -> Respondent:
    return enrol(open_now(published), lincoln, language="en")


# The narrowest screen covers phones in light mode: both have one column. The person
# answers on the last one.
SCREENS = {
    "ar": [{"viewport": LAPTOP}, {"viewport": PHONE, "color_scheme": "dark"}],
    "en": [
        {"viewport": TABLET, "forced_colors": "active"},
        {"viewport": LAPTOP, "color_scheme": "dark"},
        {"viewport": {"width": 320, "height": 600}},
    ],
}
# 200 % zoom of a 1280 px window is a 640 px window.
ENLARGED = {"width": 640, "height": 400}


def pages_of(person: Person, language: str) -> Iterator[str]:
    """Walk through the survey; yield after each new view."""
    page = person.page
    if language != "en":
        page.select_option("#language", language)
        expect(page.locator("html")).to_have_attribute("lang", language)
    for n in range(1, TOTAL + 1):
        yield f"page {n}, blank"
        if page.locator("#page .required-mark").count():
            person.turn()
            expect(page.locator("#page .error:visible").first).to_be_visible()
            yield f"page {n}, with errors"
        person.answer_page()
        yield f"page {n}, answered"
        if n < TOTAL:
            person.next()
            person.sees("saved")
    person.turn()
    page.wait_for_url("**/take/complete/**")
    yield "review"
    person.finish()
    yield "thanks"


@pytest.mark.parametrize("language", SCREENS)
def test_pages_are_accessible_and_fit_the_screen(
    device: Callable, maya: Respondent, language: str
):
    screens = SCREENS[language]
    # Without motion there is no need to wait for animations to end.
    page = device(**screens[-1], reduced_motion="reduce").new_page()
    page.goto(f"/?language={language}")
    assert violations_on(page, screens) == []
    page.fill("#code", "ABCD-EFGH-KLMN")
    page.click("button[type=submit]")
    expect(page.locator("#code-error")).to_be_visible()
    assert violations_on(page, screens) == []

    person = Person(page, known={"whole": "7"})
    person.skips = 0
    person.log_in(maya)
    for sight in pages_of(person, language):
        page.set_viewport_size(ENLARGED)
        assert (sight, scrolls_sideways(page)) == (sight, False)
        assert (sight, violations_on(page, screens)) == (sight, [])


SELECTED = """() => {
  const { id, value, selectionStart, selectionEnd } = document.activeElement;
  return [id, value.slice(selectionStart, selectionEnd)];
}"""


def test_a_character_that_no_code_has_is_selected(device: Callable):
    page = device().new_page()
    page.goto("/")
    page.fill("#code", "“ABCD EFGJ KLMN”")
    page.click("button[type=submit]")
    expect(page.locator("#code-error")).to_contain_text("Check character 8")
    check(page, "code")
    assert page.evaluate(SELECTED) == ["code", "J"]
    page.keyboard.type("K")
    expect(page.locator("#code")).to_have_value("“ABCD EFGK KLMN”")


# Colors that axe reads, mixes and compares in different ways.
SPOIL = """() => {
  document.querySelector("label[for=code]").remove();
  for (const style of [
    "color: #999; background: white",
    "color: rgb(120 120 120 / 60%); background: rgb(255 255 255 / 50%)",
    "color: hsl(60 90% 50%); opacity: 0.8",
    "color: oklch(0.8 0.1 200); mix-blend-mode: multiply",
    "color: white; text-shadow: 0 0 1px #ccc",
  ]) {
    const text = document.createElement("p");
    text.style.cssText = style;
    text.textContent = style;
    document.querySelector("main").append(text);
  }
}"""


def test_violations_are_found_and_the_same_as_by_axe_without_its_shortcuts(
    device: Callable,
):
    page = device().new_page()
    results = []
    for script in (quick_axe(), Axe().axe_script):
        page.goto("/")
        page.evaluate(SPOIL)
        page.evaluate(script)
        results.append(violations(page))
    assert results[0] == results[1]
    rules = [violation.partition(":")[0] for violation in results[0]]
    assert rules.count("label") == 1
    assert rules.count("color-contrast") >= 4


def test_the_survey_can_be_completed_by_keyboard(device: Callable, maya: Respondent):
    page = device(viewport=LAPTOP).new_page()
    page.goto("/")
    # The browser moves the focus with its first picture, not with the page.
    expect(page.locator("#code")).to_be_focused()
    page.keyboard.type(code_of(maya))
    page.keyboard.press("Enter")
    page.wait_for_selector("#page section.page")

    def to(selector: str) -> None:
        for _ in range(60):
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {selector}.")

    def turn() -> None:
        to("#next")
        page.wait_for_timeout(600)
        page.keyboard.press("Enter")

    to("[name=radio]")
    page.keyboard.press("ArrowDown")
    expect(page.locator("[name=radio]:checked")).to_have_value("2")
    to("[name=minimal]")
    page.keyboard.type("Agree")
    to("[name=pets]")
    page.keyboard.press("Space")
    to("[name=promise]")
    page.keyboard.press("Space")
    turn()

    # The new page's heading has the focus, and is announced with the progress.
    page.wait_for_selector("section.page[data-page='2']")
    assert page.evaluate("document.activeElement.className") == "page-title"
    expect(page.locator("#page .page-title")).to_have_accessible_description(
        re.compile("2")
    )
    to("[name=short]")
    page.keyboard.type("Rex")
    expect(page.locator("[data-pipe=short]")).to_have_text("Rex")
    to("[name=slide]")
    page.keyboard.press("ArrowRight")
    turn()

    page.wait_for_selector("section.page[data-page='3']")
    to("[name=row1]")
    page.keyboard.press("Space")
    to("[name=row2]")
    page.keyboard.press("ArrowRight")
    turn()
    page.wait_for_url("**/take/complete/**")
    to("#finish-button")
    page.keyboard.press("Enter")
    expect(page.locator(".done")).to_be_visible()


def test_grids_are_announced_with_statement_and_option(
    device: Callable, maya: Respondent
):
    page = device(viewport=LAPTOP).new_page()
    Person(page).log_in(maya)
    page.goto("/take/#page-3/row1")
    page.wait_for_selector("section.page[data-page='3']")
    group = page.get_by_role("group", name="Do you agree?")
    statement = group.get_by_role("radiogroup", name="Students listen.").or_(
        group.get_by_role("group", name="Students listen.")
    )
    expect(statement.get_by_role("radio", name="Strongly agree")).to_have_count(1)


def test_errors_are_announced_and_linked_to_items(device: Callable, maya: Respondent):
    page = device().new_page()
    person = Person(page)
    person.log_in(maya)
    person.turn()
    summary = page.get_by_role("alert").or_(page.locator(".error-summary")).first
    expect(summary).to_be_visible()
    summary.get_by_role("link").first.click()
    assert page.evaluate("document.activeElement.name") == "radio"
    group = page.locator("#item-radio")
    expect(group).to_have_attribute("aria-describedby", re.compile(r"\bradio-error\b"))
    expect(group).to_have_attribute("aria-invalid", "true")
