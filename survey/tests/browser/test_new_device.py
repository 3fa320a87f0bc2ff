"""A new device: earlier answers are not shown, kept, and can be given again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from survey.models import Administration, DeviceLogin
from survey.tests.browser.accessibility import violations
from survey.tests.browser.person import press_next
from survey.tests.browser.test_tab import answers_of, choose, has_status, is_on
from survey.tests.conftest import code_of

pytestmark = pytest.mark.django_db(transaction=True)

NOTE = "Answered earlier."


@pytest.fixture
def open_survey(device, maya) -> Callable[[], Page]:
    """Log Maya in on a new device, in English."""

    def open_survey() -> Page:
        page = device().new_page()
        page.goto("/?language=en")
        page.fill("#code", code_of(maya))
        page.click("button[type=submit]")
        page.wait_for_selector("#page section.page")
        return page

    return open_survey


@pytest.fixture
def half_answered(open_survey, maya) -> dict[str, str | None]:
    """Answer the first page on Maya's own device; return what is stored."""
    page = open_survey()
    choose(page, "safe", "3")
    page.fill("#comment-input", "only mine")
    next_page(page, 2)
    has_status(page, "saved")
    stored = answers_of(maya)
    assert stored["comment"] == "only mine"
    return stored


def next_page(page: Page, to: int) -> None:
    press_next(page)
    is_on(page, to)


def test_earlier_answers_are_kept_and_not_shown(open_survey, half_answered, maya):
    page = open_survey()
    # The first page with an open question.
    is_on(page, 2)
    expect(page.locator(".answered-earlier")).to_have_count(0)
    page.click("#back")
    is_on(page, 1)
    expect(page.locator(".answered-earlier")).to_contain_text(NOTE)
    assert violations(page) == []
    expect(page.locator("#comment-input")).to_have_value("")
    assert "only mine" not in page.content()

    # Going on with blank questions stores no blanks.
    next_page(page, 2)
    page.wait_for_timeout(600)
    assert answers_of(maya) == half_answered

    page.click("#back")
    is_on(page, 1)
    choose(page, "safe", "1")
    next_page(page, 2)
    has_status(page, "saved")
    assert answers_of(maya) == half_answered | {"safe": "1"}
    # What was answered here is shown here, until the page is loaded again.
    page.click("#back")
    is_on(page, 1)
    expect(page.locator("#item-safe input:checked")).to_have_value("1")


def test_the_own_device_shows_its_answers_after_a_reload(open_survey, maya):
    page = open_survey()
    choose(page, "safe", "3")
    page.fill("#comment-input", "only mine")
    next_page(page, 2)
    has_status(page, "saved")
    page.click("#back")
    is_on(page, 1)
    page.reload()
    is_on(page, 1)
    expect(page.locator("#comment-input")).to_have_value("only mine")
    expect(page.locator(".answered-earlier")).to_have_count(0)


def test_without_the_protection_the_answers_would_be_shown(
    open_survey, half_answered, maya
):
    Administration.objects.update(replays_answers=True)
    page = open_survey()
    page.click("#back")
    is_on(page, 1)
    expect(page.locator("#comment-input")).to_have_value("only mine")
    assert DeviceLogin.objects.count() == 2


def test_the_review_on_a_new_device_lists_no_answers(open_survey, half_answered, maya):
    page = open_survey()
    page.goto("/take/complete/")
    expect(page.locator("main")).to_contain_text("They are not shown here")
    assert "only mine" not in page.content()
    assert violations(page) == []
