"""A parent begins with the link on a poster, and answers for two children."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from survey.fieldwork.open_codes.codes import code_of
from survey.models import OpenDecline, Respondent, Response
from survey.tests.browser.accessibility import scrolls_sideways, violations
from survey.tests.browser.conftest import PHONE
from survey.tests.browser.person import Person
from survey.tests.open_codes.cast import open_code, open_to_parents

pytestmark = pytest.mark.django_db(transaction=True)
KNOWN = {"age": "12", "bus": "15", "promise": "OK"}


@pytest.fixture
def code(transactional_db, lincoln):
    return open_code(open_to_parents(), lincoln)


def begin(page: Page) -> str:
    """Choose Begin, and return the personal code."""
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your survey has begun")
    return page.locator(".lead .code").inner_text()


def test_a_parent_answers_for_two_children_and_continues_on_a_phone(
    device, server, code
):
    page = device().new_page()
    page.goto(f"{server.url}/open/#{code_of(code)}")
    expect(page.get_by_text("invites you to answer")).to_contain_text("Lincoln")
    assert code_of(code) not in page.url
    assert violations(page) == []
    assert not Respondent.objects.exists()

    begin(page)
    page.get_by_role("link", name="Go to the questions").click()
    person = Person(page, seed=5, known=KNOWN)
    page.wait_for_selector("#page section.page")
    person.answer_to_the_end()
    person.finish()
    page.get_by_role("button", name="Answer for another child").click()
    personal = begin(page)
    assert violations(page) == []

    phone = device(viewport=PHONE).new_page()
    phone.goto(server.url)
    phone.fill("#code", personal)
    phone.click("button[type=submit]")
    on_phone = Person(phone, seed=6, known=KNOWN)
    phone.wait_for_selector("#page section.page")
    on_phone.answer_page()
    on_phone.next()
    on_phone.sees("saved")
    first, second = Respondent.objects.order_by("pk")
    assert first.completed_at and not second.completed_at
    assert Response.objects.filter(respondent_id=second.pk).exists()


def test_next_works_from_the_moment_at_which_it_appears(device, server, code):
    context = device()
    page = context.new_page()
    page.goto(f"{server.url}/open/#{code_of(code)}")
    begin(page)
    # A slow network: the frame of the page is there long before its scripts.
    held: list[Route] | None = []

    def hold(route: Route) -> None:
        route.continue_() if held is None else held.append(route)

    context.route("**/*.js", hold)
    page.get_by_role("link", name="Go to the questions").click()
    expect(page.locator("#page .loading")).to_be_visible()
    expect(page.locator("#next")).to_be_hidden()
    # Longer than a double click on the link, whose second click turns no page.
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 500))")
    # Clicked in the frame in which it appears: a person is never as fast.
    page.evaluate("""() => { window.pressed = new Promise((resolve) => {
      const press = () => {
        if (next.hidden) return;
        watch.disconnect();
        next.click();
        resolve();
      };
      const next = document.getElementById("next");
      const watch = new MutationObserver(press);
      watch.observe(next, { attributes: true });
      press();
    })}""")
    scripts, held = held, None
    for script in scripts:
        script.continue_()
    page.evaluate("window.pressed")
    # The first page has a question that must be answered.
    expect(page.locator("#page .error-summary")).to_be_visible()


def test_the_pages_of_an_open_code_fit_a_phone(device, server, code):
    page = device(viewport=PHONE, color_scheme="dark").new_page()
    page.goto(f"{server.url}/open/")
    page.fill("#code", "ABCD-EFG")
    page.click("button[type=submit]")
    expect(page.locator("#code-error")).to_contain_text("12 letters")
    assert violations(page) == [] and not scrolls_sideways(page)
    page.fill("#code", code_of(code).lower())
    page.click("button[type=submit]")
    expect(page.get_by_role("button", name="Begin")).to_be_visible()
    assert violations(page) == [] and not scrolls_sideways(page)
    page.get_by_role("button", name="Decline").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("not to take part")
    assert violations(page) == [] and not scrolls_sideways(page)
    assert OpenDecline.objects.count() == 1
    assert not Respondent.objects.exists()


def test_impatient_clicks_without_javascript_begin_one_survey(device, server, code):
    page = device(java_script_enabled=False).new_page()
    page.goto(f"{server.url}/open/")
    page.fill("#code", code_of(code))
    page.get_by_role("button", name="Continue").click(click_count=3)
    page.get_by_role("button", name="Begin").click(click_count=3)
    expect(page.get_by_role("heading", level=1)).to_have_text("Your survey has begun")
    assert Respondent.objects.count() == 1
