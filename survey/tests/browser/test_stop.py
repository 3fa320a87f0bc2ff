"""*Stop for now*: answers are saved, hidden, and the computer is free."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, Route, expect

from settings.tests.patience import eventually, patience
from survey.models import Administration
from survey.tests.browser.accessibility import violations
from survey.tests.browser.test_half_answered import next_page
from survey.tests.browser.test_tab import (
    SAVES,
    answers_of,
    begin,  # noqa: F401
    choose,
    close_at,
    has_status,
    is_on,
    kept_on,
)
from survey.tests.browser.test_two_people import log_in
from survey.tests.conftest import code_of

pytestmark = pytest.mark.django_db(transaction=True)

STOP = "**/take/stop/"
STOPPED_PAGE = re.compile(r"/take/stop/\?")
# Longer than the time after which what is typed is stored on the device.
LONGER_THAN_A_DRAFT_WAITS = 0.8
SECRET = "only mine"


@pytest.fixture
def answering(begin) -> Page:  # noqa: F811
    """Maya on page 2, with page 1 saved and an answer that is not sent yet."""
    page = begin()
    choose(page, "safe", "3")
    page.fill("#comment-input", SECRET)
    next_page(page)
    is_on(page, 2)
    has_status(page, "saved")
    page.locator("#item-promise input").check()
    return page


def is_stopped(page: Page) -> None:
    page.wait_for_url("**/take/stop/**")
    expect(page.locator(".done h1")).to_have_text("Your answers are saved")
    assert SECRET not in page.content()


def is_hidden(page: Page) -> None:
    expect(page.locator("#page section.page")).to_have_count(0)
    assert SECRET not in page.content()


def enter_code(page: Page, respondent) -> None:
    page.fill("#notice-access-code", code_of(respondent))
    page.locator("#notice").get_by_role("button", name="Continue").click()


def test_stopping_saves_what_was_answered_and_frees_the_computer(answering, maya, noor):
    answering.get_by_role("button", name="Stop for now").click()
    is_stopped(answering)
    assert violations(answering) == []
    stored = answers_of(maya)
    assert (stored["comment"], stored["promise"]) == (SECRET, "OK")
    # As when a page is left without *Next*: the other questions stay open.
    assert "bus" not in stored
    eventually(lambda: kept_on(answering) == 0)
    assert answering.evaluate("Object.keys(localStorage)") == []
    assert code_of(maya) not in answering.content()

    # The next child finds nothing, by the back button or by an address.
    for address in ("/take/", "/take/complete/"):
        answering.goto(address)
        expect(answering.locator("#code")).to_be_visible()
    log_in(answering, noor)
    expect(answering.locator("#comment-input")).to_have_value("")

    # Her code continues where she stopped, and shows nothing that was answered.
    log_in(answering, maya)
    is_on(answering, 2)
    answering.click("#back")
    is_on(answering, 1)
    expect(answering.locator(".answered-earlier")).to_be_visible()
    expect(answering.locator("#comment-input")).to_have_value("")
    assert answers_of(maya) == stored


def test_where_replay_is_allowed_the_code_shows_the_answers_again(answering, maya):
    Administration.objects.update(replays_answers=True)
    answering.click("#stop")
    is_stopped(answering)
    log_in(answering, maya)
    is_on(answering, 2)
    answering.click("#back")
    expect(answering.locator("#comment-input")).to_have_value(SECRET)


def test_the_back_button_shows_nothing_after_stopping(answering):
    answering.click("#stop")
    is_stopped(answering)
    answering.go_back()
    expect(answering.locator("#code")).to_be_visible()
    assert SECRET not in answering.content()


def test_stopping_keeps_a_valid_answer_in_place_of_an_incomplete_one(
    begin,  # noqa: F811
    maya,
):
    page = begin()
    choose(page, "safe", "3")
    page.fill("#age-input", "12")
    next_page(page)
    is_on(page, 2)
    has_status(page, "saved")
    page.click("#back")
    is_on(page, 1)
    page.fill("#age-input", "1x")
    page.click("#stop")
    is_stopped(page)
    assert answers_of(maya)["age"] == "12"


def test_offline_it_says_so_hides_the_answers_and_saves_them_later(answering, maya):
    answering.context.set_offline(True)
    answering.click("#stop")
    question = answering.get_by_role("alertdialog")
    expect(question).to_contain_text("can't be saved right now")
    assert violations(answering) == []
    question.get_by_role("button", name="Continue").click()
    is_on(answering, 2)
    expect(answering.locator("#stop")).to_be_focused()

    answering.click("#stop")
    question.get_by_role("button", name="Stop for now").click()
    is_hidden(answering)
    notice = answering.locator("#notice")
    expect(notice).to_contain_text("Some answers are not saved yet")
    expect(answering.locator("#notice-access-code")).to_be_visible()
    assert violations(answering) == []
    eventually(lambda: kept_on(answering) == 1)
    assert "promise" not in answers_of(maya)

    answering.context.set_offline(False)
    is_stopped(answering)
    assert answers_of(maya)["promise"] == "OK"


@pytest.fixture
def unsaved(answering) -> Page:
    """Maya stopped, but the server does not take her last answer."""
    answering.route(SAVES, lambda route: route.abort())
    answering.click("#stop")
    expect(answering.locator("#notice-access-code")).to_be_visible()
    is_hidden(answering)
    return answering


def test_a_reload_shows_nothing_of_what_was_hidden(unsaved, maya):
    unsaved.reload()
    expect(unsaved.locator("#notice")).to_contain_text("not saved yet")
    is_hidden(unsaved)
    # Nor does another tab.
    tab = unsaved.context.new_page()
    tab.goto("/take/")
    expect(tab.locator("#notice-title")).not_to_be_empty()
    is_hidden(tab)
    tab.goto("/take/complete/")
    is_hidden(tab)


@pytest.mark.parametrize("is_protected", [True, False])
def test_a_slow_script_leaves_the_review_hidden(unsaved, is_protected):
    tab = unsaved.context.new_page()

    def hold(route: Route) -> None:
        is_hiding = "hide_stopped" in route.request.url
        if is_hiding and is_protected:
            route.continue_()
        elif is_hiding:
            route.abort()

    tab.route("**/*.js", hold)
    tab.goto("/take/complete/", wait_until="commit")
    reviewed = tab.locator(".reviewed")
    reviewed.wait_for(state="attached")
    if is_protected:
        expect(reviewed).to_be_hidden()
    else:
        expect(reviewed).to_be_visible()


def test_the_code_shows_the_survey_again(unsaved, maya):
    enter_code(unsaved, maya)
    is_on(unsaved, 2)
    unsaved.unroute_all()
    expect(unsaved.locator("#item-promise input")).to_be_checked()
    has_status(unsaved, "saved")
    assert answers_of(maya)["promise"] == "OK"
    # It is an open survey again.
    unsaved.reload()
    is_on(unsaved, 2)
    unsaved.click("#stop")
    is_stopped(unsaved)


def test_another_code_shows_only_its_own_survey(unsaved, maya, noor):
    enter_code(unsaved, noor)
    unsaved.wait_for_selector("#page section.page")
    unsaved.unroute_all()
    assert SECRET not in unsaved.content()
    # Maya's answer waits for her, and her own code sends it.
    assert "promise" not in answers_of(maya)
    log_in(unsaved, maya)
    has_status(unsaved, "saved")
    assert answers_of(maya)["promise"] == "OK"


def test_a_server_that_does_not_end_the_session_is_asked_again(answering, maya):
    answering.route(STOP, lambda route: route.abort())
    answering.click("#stop")
    notice = answering.locator("#notice")
    expect(notice).to_contain_text("Your answers are saved, but")
    is_hidden(answering)
    answering.unroute_all()
    is_stopped(answering)


def test_all_tabs_of_a_person_stop_together(answering, maya):
    tab = answering.context.new_page()
    tab.goto("/take/")
    is_on(tab, 2)
    tab.click("#back")
    is_on(tab, 1)
    tab.fill("#comment-input", "from the other tab")
    answering.click("#stop")
    for page in (answering, tab):
        page.wait_for_url("**/take/stop/**")
    stored = answers_of(maya)
    assert (stored["promise"], stored["comment"]) == ("OK", "from the other tab")
    eventually(lambda: kept_on(answering) == 0)


def test_a_tab_that_stopped_keeps_nothing_while_it_waits_for_the_last_page(
    answering, maya
):
    tab = answering.context.new_page()
    tab.goto("/take/")
    tab.click("#back")
    is_on(tab, 1)

    def load_slowly(route: Route) -> None:
        time.sleep(LONGER_THAN_A_DRAFT_WAITS)
        route.continue_()

    tab.route(STOPPED_PAGE, load_slowly)
    # The field keeps the focus until it is taken off the screen.
    tab.fill("#comment-input", "from the other tab")
    answering.click("#stop")
    is_stopped(tab)
    assert kept_on(tab) == 0
    assert answers_of(maya)["comment"] == "from the other tab"


def test_a_tab_with_nothing_unsent_waits_until_others_have_stored_what_was_typed(
    answering, maya
):
    next_page(answering)
    has_status(answering, "saved")
    tab = answering.context.new_page()
    # A busy device: it hears of the stop a moment later.
    tab.add_init_script(
        """addEventListener("storage", () => {
          const until = performance.now() + 100;
          while (performance.now() < until);
        });"""
    )
    tab.goto("/take/")
    tab.click("#back")
    is_on(tab, 2)
    tab.click("#back")
    is_on(tab, 1)
    tab.fill("#comment-input", "from the other tab")
    answering.click("#stop")
    for page in (answering, tab):
        page.wait_for_url("**/take/stop/**")
    assert answers_of(maya)["comment"] == "from the other tab"
    eventually(lambda: kept_on(answering) == 0)


def test_a_tab_stops_nobody_but_its_own_person(answering, maya, noor):
    tab = answering.context.new_page()
    log_in(tab, noor)
    choose(tab, "safe", "1")
    answering.click("#stop")
    # What she had not sent waits for her code.
    expect(answering.locator(".done h1")).to_have_text("Some answers are not saved yet")
    assert violations(answering) == []
    assert SECRET not in answering.content()
    assert "promise" not in answers_of(maya)
    next_page(tab)
    has_status(tab, "saved")
    assert answers_of(noor)["safe"] == "1"
    answering.get_by_role("link", name="Enter your code").click()
    expect(answering.locator("#unsent")).to_be_visible()
    answering.fill("#code", code_of(maya))
    answering.click("button[type=submit]")
    has_status(answering, "saved")
    assert answers_of(maya)["promise"] == "OK"


def test_a_survey_that_has_closed_is_left_for_the_code_field(answering, maya):
    close_at(maya, timezone.now() - timedelta(hours=1))
    answering.click("#stop")
    expect(answering.locator("#code")).to_be_visible()
    expect(answering.locator("#unsent")).to_be_visible()
    answering.goto("/take/complete/")
    expect(answering.locator("#code")).to_be_visible()


def test_the_review_can_be_stopped(begin, maya):  # noqa: F811
    page = begin()
    choose(page, "safe", "3")
    page.fill("#comment-input", SECRET)
    for n in (2, 3):
        next_page(page)
        is_on(page, n)
    next_page(page)
    page.wait_for_url("**/take/complete/**")
    expect(page.locator(".reviewed")).to_contain_text(SECRET)
    assert violations(page) == []
    page.route(STOP, lambda route: route.abort())
    page.get_by_role("button", name="Stop for now").click()
    expect(page.locator("#notice-access-code")).to_be_visible()
    assert SECRET not in page.content()
    page.reload()
    expect(page.locator("#notice-access-code")).to_be_visible()
    assert SECRET not in page.content()
    page.unroute_all()
    is_stopped(page)
    maya.refresh_from_db()
    assert maya.completed_at is None


def test_the_words_of_stopping_follow_the_language(answering, maya):
    answering.select_option("#language", "es")
    answering.get_by_role("button", name="Parar por ahora").click()
    answering.wait_for_url("**/take/stop/**")
    expect(answering.locator(".done h1")).to_have_text("Las respuestas están guardadas")


# Opening the login page


def test_a_tab_goes_on_after_the_login_page_was_opened_by_mistake(answering, maya):
    tab = answering.context.new_page()
    tab.goto("/")
    next_page(answering)
    notice = answering.locator("#notice")
    expect(notice).to_contain_text("Enter your code again")
    enter_code(answering, maya)
    has_status(answering, "saved")
    is_on(answering, 3)
    assert answers_of(maya)["promise"] == "OK"
    answering.click("#back")
    is_on(answering, 2)
    expect(answering.locator("#item-promise input")).to_be_checked()


def test_going_back_to_the_code_field_ends_the_session(
    device: Callable[..., BrowserContext], maya
):
    page = device().new_page()
    page.goto("/?language=en")
    page.fill("#code", code_of(maya))
    page.click("button[type=submit]")
    is_on(page, 1)
    choose(page, "safe", "3")
    page.wait_for_timeout(800)
    page.go_back()
    expect(page.locator("#code")).to_be_visible()
    page.goto("/take/")
    expect(page.locator("#code")).to_be_visible()
    # Sent while the page was left, or kept until the code is typed here again.
    log_in(page, maya)
    expect(page.locator("#item-safe input:checked")).to_have_value(
        "3", timeout=patience(10) * 1000
    )
