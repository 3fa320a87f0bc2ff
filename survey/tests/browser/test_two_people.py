"""Two people at one computer: a tab belongs to one of them for its lifetime."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from survey.models import Respondent, Response
from survey.tests.browser.person import press_next
from survey.tests.browser.test_tab import (
    answers_of,
    begin,  # noqa: F401
    choose,
    has_status,
    is_on,
)
from survey.tests.conftest import code_of

pytestmark = pytest.mark.django_db(transaction=True)


def log_in(page: Page, respondent: Respondent) -> None:
    page.goto("/")
    page.fill("#code", code_of(respondent))
    page.click("button[type=submit]")
    page.wait_for_selector("#page section.page")


@pytest.fixture
def two_tabs(begin, maya, noor) -> tuple[Page, Page]:  # noqa: F811
    """Maya's tab, and Noor's in the same browser with an answer of hers."""
    hers = begin()
    return hers, answer_as(noor, hers.context)


def answer_as(noor: Respondent, context: BrowserContext) -> Page:
    page = context.new_page()
    log_in(page, noor)
    choose(page, "safe", "1")
    page.fill("#comment-input", "secret of Noor")
    press_next(page)
    is_on(page, 2)
    has_status(page, "saved")
    return page


def stopped(page: Page) -> None:
    notice = page.locator("#notice")
    expect(notice).to_contain_text("Someone else is using this computer")
    # Her answers are not for whoever sits there now.
    expect(page.locator("#page section.page")).to_have_count(0)


def test_the_way_back_into_a_survey_is_the_own_code(two_tabs, maya, noor):
    page, _ = two_tabs
    choose(page, "safe", "3")
    press_next(page)
    stopped(page)
    before = answers_of(noor)
    page.locator("#notice").get_by_role("button", name="Enter your code").click()
    expect(page.locator("#code")).to_be_visible()
    assert "secret of Noor" not in page.content()
    assert answers_of(noor) == before

    # Her unsaved page was kept, and is saved as hers.
    page.fill("#code", code_of(maya))
    page.click("button[type=submit]")
    page.wait_for_selector("#page section.page")
    has_status(page, "saved")
    assert answers_of(maya)["safe"] == "3"
    assert answers_of(noor) == before


def test_no_way_through_a_tab_leads_to_another_persons_answers(begin, maya, noor):  # noqa: F811
    page = begin()
    ways = ("reload", "language", "history", "review")
    tabs = {way: begin(page.context) for way in ways}
    answer_as(noor, page.context)
    assert Response.objects.filter(value="secret of Noor").exists()
    for way, page in tabs.items():
        is_on(page, 1)
        if way == "reload":
            page.reload()
        elif way == "language":
            page.select_option("#language", "es")
            page.wait_for_timeout(1000)
        elif way == "history":
            page.goto("about:blank")
            page.go_back()
        else:
            address = page.url.replace("/take/?", "/take/complete/?").split("#")[0]
            page.goto(address)
        body = page.locator("body")
        expect(body).to_contain_text("Someone else is using this computer")
        assert "secret of Noor" not in page.content(), way
        expect(page.get_by_text("Enter your code", exact=True)).to_be_visible()


def test_answers_that_a_device_cannot_keep_are_saved_from_the_tab(
    device,
    begin,  # noqa: F811
    maya,
    noor,
):
    context = device()
    # A private window without storage.
    context.add_init_script(
        "Object.defineProperty(window, 'indexedDB', {value: undefined})"
    )
    page = begin(context)
    tab = context.new_page()
    log_in(tab, noor)
    choose(page, "safe", "3")
    press_next(page)
    stopped(page)
    page.fill("#notice-access-code", "ABC0")
    page.keyboard.press("Enter")
    expect(page.locator("#notice-error")).to_contain_text("Check character 4")
    assert page.evaluate("() => getSelection().toString()") == "0"
    page.fill("#notice-access-code", code_of(maya))
    page.locator("#notice").get_by_role("button").click()
    has_status(page, "saved")
    is_on(page, 2)
    assert answers_of(maya)["safe"] == "3"
    assert answers_of(noor) == {}
