"""Without JavaScript, or with a script that fails: the same survey, the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

import survey.simulation.demo
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import Item, PublishedSurvey, Respondent, Response
from survey.tests.browser.person import Person
from survey.tests.conftest import code_of, enrol, open_now

pytestmark = pytest.mark.django_db(transaction=True)

STUDENTS = Path(survey.simulation.demo.__file__).with_name("students.xlsx")
Rows = dict[str, tuple[str, str | None]]


@pytest.fixture
def published(transactional_db: None) -> PublishedSurvey:
    with STUDENTS.open("rb") as file:
        draft = read_xlsform(file).draft
    source = STUDENTS.read_bytes()
    return publish_survey(
        survey=import_survey(draft=draft, source_name="students.xlsx", source=source)
    )


def rows_of(respondent: Respondent) -> Rows:
    names = dict(Item.objects.values_list("id", "name"))
    rows = Response.objects.filter(respondent_id=respondent.pk)
    return {
        names[item]: (state, value)
        for item, state, value in rows.values_list("item_id", "state", "value")
    }


def log_in(page: Page, respondent: Respondent) -> None:
    page.goto("/")
    page.fill("#code", code_of(respondent))
    page.click("button[type=submit]")
    page.wait_for_url("**/take/plain/**")


def fill(item: Locator, value: str) -> None:
    kind = item.get_attribute("data-kind")
    if item.locator("select").count():
        item.locator("select").select_option(value)
    elif kind in ("select_one", "select_multiple", "acknowledge"):
        for choice in value.split(" ") if kind == "select_multiple" else [value]:
            item.locator(f"[data-value='{choice}'] input").check()
    else:
        item.locator("input, textarea").fill(value)


def press(page: Page, button: str) -> None:
    with page.expect_navigation():
        page.locator(f"button[value={button}]").click()


def answer_to_the_end(page: Page, rows: Rows) -> int:
    """Give these answers; return how often a page was sent."""
    for sent in range(100):
        if "/take/complete/" in page.url:
            return sent
        for item in page.locator(".item[data-item]").all():
            _, value = rows.get(item.get_attribute("data-item") or "", ("", None))
            editable = item.locator("[disabled], [readonly]").count() == 0
            if value is not None and editable:
                fill(item, value)
        press(page, "next")
    raise AssertionError(page.url)


def test_the_same_rows_are_stored_without_javascript(
    device, lincoln, roosevelt, published
):
    administration = open_now(published)
    maya = enrol(administration, lincoln, grade="07", language="en")
    noor = enrol(administration, roosevelt, grade="08", language="en")
    person = Person(device().new_page(), seed=7)
    person.log_in(maya)
    person.answer_to_the_end()
    person.finish()

    page = device(java_script_enabled=False).new_page()
    log_in(page, noor)
    expect(page.locator("button[value=next]")).to_have_text("Next")
    answer_to_the_end(page, rows_of(maya))
    assert rows_of(noor) == rows_of(maya)
    page.click("#finish-button")
    expect(page.locator(".done")).to_be_visible()
    noor.refresh_from_db()
    assert noor.completed_at is not None


def break_an_api(context: BrowserContext) -> None:
    context.add_init_script("delete window.URLSearchParams")


def break_the_syntax(context: BrowserContext) -> None:
    def fulfill(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body="let a ??? = 1;" + response.text())

    context.route("**/CACHE/js/**", fulfill)


@pytest.mark.parametrize("spoil", [break_an_api, break_the_syntax])
def test_a_browser_whose_scripts_fail_gets_the_plain_pages(
    device, lincoln, published, spoil
):
    maya = enrol(open_now(published), lincoln, language="en")
    context = device()
    spoil(context)
    page = context.new_page()
    log_in(page, maya)
    expect(page.locator("button[value=next]")).to_be_visible()
    page.check("#item-ready input")
    press(page, "next")
    assert "/take/plain/2/" in page.url


def test_a_browser_without_modules_gets_the_plain_pages(device, lincoln, published):
    maya = enrol(open_now(published), lincoln, language="en")
    page = device().new_page()
    Person(page).log_in(maya)

    def fulfill(route: Route) -> None:
        response = route.fetch()
        body = response.text().replace('type="module"', 'type="unknown"')
        route.fulfill(response=response, body=body)

    page.route("**/take/", fulfill)
    page.goto("/take/")
    page.wait_for_url("**/take/plain/**")
    expect(page.locator("button[value=next]")).to_be_visible()


def test_a_link_appears_where_no_script_was_delivered(device, lincoln, published):
    maya = enrol(open_now(published), lincoln, language="en")
    context = device()
    context.route("**/*.js", lambda route: route.abort())
    page = context.new_page()
    page.goto("/")
    page.fill("#code", code_of(maya))
    page.click("button[type=submit]")
    page.get_by_role("link", name="Use the simple version").click()
    expect(page.locator("button[value=next]")).to_be_visible()


def test_a_browser_that_runs_the_scripts_stays_with_them(device, lincoln, published):
    maya = enrol(open_now(published), lincoln, language="en")
    page = device().new_page()
    Person(page).log_in(maya)
    expect(page.locator("#simple-version")).to_have_count(0)
    assert "/plain/" not in page.url
