"""Pages left half answered: nothing is stored for what is open, and it is asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from settings.tests.patience import eventually
from survey.models import Respondent, Response
from survey.tests.browser.person import press_next
from survey.tests.browser.test_tab import (
    HIDE,
    answers_of,
    begin,  # noqa: F401
    choose,
    has_status,
    is_on,
)
from survey.tests.browser.test_tabs_meet import close
from survey.tests.conftest import PAGES, enrol, open_now, publish_items

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = [f"row{n}" for n in range(1, 7)]
GRID = {name: {"kind": "select_one", "option_set": "agree"} for name in ROWS}


def next_page(page: Page) -> None:
    press_next(page)


@pytest.fixture
def grid(transactional_db, lincoln) -> Respondent:
    published = publish_items([GRID, *PAGES[1:]])
    administration = open_now(published)
    # The pages are looked at on several devices.
    administration.replays_answers = True
    administration.save()
    return enrol(administration, lincoln, language="en")


@pytest.fixture
def open_grid(device, grid) -> Callable[[], Page]:
    from survey.tests.conftest import code_of

    def open_grid() -> Page:
        page = device().new_page()
        page.goto("/")
        page.fill("#code", code_of(grid))
        page.click("button[type=submit]")
        page.wait_for_selector("#page section.page")
        return page

    return open_grid


@pytest.mark.parametrize("leave", ["close", "hide", "back"])
def test_open_questions_of_a_page_are_asked_again(open_grid, grid, leave):
    page = open_grid()
    choose(page, "row2", "3")
    if leave == "close":
        close(page)
    else:
        page.evaluate(HIDE)
        has_status(page, "saved")
    eventually(lambda: answers_of(grid) == {"row2": "3"})

    second = open_grid()
    is_on(second, 1)
    expect(second.locator("#item-row2 input:checked")).to_have_value("3")
    choose(second, "row1", "1")
    next_page(second)
    is_on(second, 2)
    has_status(second, "saved")
    # Passed with Next, so the other four were left blank on purpose.
    expected = dict.fromkeys(ROWS) | {"row1": "1", "row2": "3"}
    assert answers_of(grid) == expected
    if leave == "back":
        choose_scale(second)
        second.click("#back")
        is_on(second, 1)
        has_status(second, "saved")
        assert answers_of(grid) == expected | {"bus": "35"}
    is_on(open_grid(), 2)


def choose_scale(page: Page) -> None:
    page.locator("#item-bus input").press("ArrowRight")


def test_a_page_that_was_passed_keeps_its_blanks(open_grid, grid):
    page = open_grid()
    choose(page, "row1", "1")
    next_page(page)
    is_on(page, 2)
    page.click("#back")
    is_on(page, 1)
    choose(page, "row2", "2")
    page.evaluate(HIDE)
    page.wait_for_timeout(600)
    has_status(page, "saved")
    assert answers_of(grid) == dict.fromkeys(ROWS) | {"row1": "1", "row2": "2"}


def test_a_cleared_answer_is_cleared_on_the_server_too(begin, maya):  # noqa: F811
    page = begin()
    page.fill("#comment-input", "a mistake")
    page.evaluate(HIDE)
    has_status(page, "saved")
    assert answers_of(maya) == {"comment": "a mistake"}
    page.fill("#comment-input", "")
    page.evaluate(HIDE)
    page.wait_for_timeout(600)
    has_status(page, "saved")
    assert answers_of(maya) == {"comment": None}


# Incomplete input


@pytest.mark.parametrize(
    ("name", "good", "typed", "at"),
    [("age", "12", "1x", 1), ("age", "12", "99", 1), ("born", "2014-03-05", "", 2)],
)
def test_incomplete_input_replaces_no_answer(
    begin,  # noqa: F811
    maya,
    name,
    good,
    typed,
    at,
):
    page = begin()
    choose(page, "safe", "3")
    if at == 2:
        next_page(page)
        is_on(page, 2)
    field = page.locator(f"#{name}-input")
    field.fill(good)
    next_page(page)
    is_on(page, at + 1)
    has_status(page, "saved")
    page.click("#back")
    is_on(page, at)
    if typed:
        field.fill(typed)
    else:
        # Removes one part of the date, as Backspace does in its day.
        field.focus()
        page.keyboard.press("Backspace")
    page.evaluate(HIDE)
    page.wait_for_timeout(800)
    assert answers_of(maya)[name] == good
    expect(page.locator("#status")).not_to_have_attribute("data-state", "saved")
    # The person is told before going on.
    page.click("#next")
    expect(page.locator(f"#{name}-error")).to_be_visible()
    is_on(page, at)
    assert answers_of(maya)[name] == good
    assert not Response.objects.filter(value="1x").exists()


def test_a_date_without_a_year_does_not_pass_next(begin, maya):  # noqa: F811
    page = begin()
    choose(page, "safe", "3")
    next_page(page)
    is_on(page, 2)
    page.locator("#born-input").focus()
    # Month and day, but no year.
    page.keyboard.type("0305")
    next_page(page)
    expect(page.locator("#born-error")).to_have_text(
        "Please enter a real date or time."
    )
    is_on(page, 2)
    page.locator("#born-input").fill("2014-03-05")
    next_page(page)
    is_on(page, 3)
    has_status(page, "saved")
    assert answers_of(maya)["born"] == "2014-03-05"


def test_looking_at_a_blank_question_again_leads_back_to_the_review(
    begin,  # noqa: F811
    maya,
):
    page = begin()
    choose(page, "safe", "3")
    for n in (2, 3):
        next_page(page)
        is_on(page, n)
    next_page(page)
    page.wait_for_url("**/take/complete/**")
    expect(page.locator("main")).to_contain_text("You left 7 questions blank")
    question = page.locator("#question-born").locator("xpath=..")
    answered = page.locator("#question-safe")
    expect(answered).to_be_visible()
    page.get_by_label("Show only the blank questions (7)").check()
    expect(answered).to_be_hidden()
    question.get_by_role("link").click()
    is_on(page, 2)
    expect(page.locator("#born-input")).to_be_focused()
    page.locator("#born-input").fill("2014-03-05")
    page.get_by_role("button", name="Back to the review").click()
    page.wait_for_url("**/take/complete/**")
    expect(page.locator("main")).to_contain_text("You left 6 questions blank")
    expect(question).to_contain_text("2014")
    assert answers_of(maya)["born"] == "2014-03-05"
    page.click("#finish-button")
    expect(page.locator(".done")).to_contain_text("All 3 pages saved")
