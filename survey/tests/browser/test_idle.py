"""Nobody is there any more: the survey asks, and then stops by itself."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from settings.tests.patience import eventually
from survey.tests.browser.accessibility import scrolls_sideways, violations
from survey.tests.browser.test_half_answered import next_page
from survey.tests.browser.test_stop import SECRET, is_hidden, is_stopped
from survey.tests.browser.test_tab import (
    SAVES,
    answers_of,
    begin,  # noqa: F401
    choose,
    is_on,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def answering(begin, device) -> Page:  # noqa: F811
    """Maya on page 1, with an answer that is not sent yet; time can be moved."""
    context = device()
    context.clock.install()
    page = begin(context)
    choose(page, "safe", "3")
    page.fill("#comment-input", SECRET)
    return page


def is_asked(page: Page) -> None:
    question = page.get_by_role("alertdialog", name="Are you still there?")
    expect(question).to_be_visible()
    expect(question).to_have_accessible_description(
        "If you do nothing for 5 minutes, your answers are saved and hidden."
        " You can continue later with your code."
    )
    expect(question.get_by_role("button", name="Continue")).to_be_focused()
    # What was answered is not on the screen while nobody may be there.
    expect(page.locator("#page")).to_be_hidden()


def test_who_is_still_there_goes_on(answering, maya):
    answering.focus("#comment-input")
    answering.clock.run_for("09:30")
    expect(answering.get_by_role("alertdialog")).to_be_hidden()
    answering.clock.run_for("01:00")
    is_asked(answering)
    assert violations(answering) == []
    assert not scrolls_sideways(answering)
    answering.keyboard.press("Enter")
    is_on(answering, 1)
    expect(answering.locator("#comment-input")).to_be_focused()
    expect(answering.locator("#comment-input")).to_have_value(SECRET)

    # Each answer begins the time anew, as often as needed; Escape is a yes.
    answering.clock.run_for("09:30")
    answering.keyboard.press("!")
    answering.clock.run_for("09:30")
    expect(answering.get_by_role("alertdialog")).to_be_hidden()
    answering.clock.run_for("01:00")
    is_asked(answering)
    answering.keyboard.press("Escape")
    is_on(answering, 1)
    answering.clock.run_for("05:00")
    is_on(answering, 1)
    assert "comment" not in answers_of(maya)


def test_nobody_answers_the_question(answering, maya):
    answering.clock.run_for("10:30")
    is_asked(answering)
    answering.clock.run_for("05:00")
    is_stopped(answering)
    assert answers_of(maya)["comment"] == SECRET


def test_the_question_can_be_answered_with_stop(answering, maya):
    answering.clock.run_for("10:30")
    is_asked(answering)
    answering.keyboard.press("Tab")
    answering.keyboard.press("Enter")
    is_stopped(answering)
    assert answers_of(maya)["comment"] == SECRET


def test_a_laptop_that_was_closed_for_an_hour_stops_when_it_is_opened(answering, maya):
    # Each timer fires once, at the end.
    answering.clock.fast_forward("01:00:00")
    is_stopped(answering)
    assert answers_of(maya)["comment"] == SECRET


def test_without_the_question_the_survey_would_stay_open(answering, maya):
    """The twin: as long as there is input, the hour shows the survey."""
    for _ in range(8):
        answering.clock.run_for("08:00")
        answering.mouse.click(1, 1)
    is_on(answering, 1)
    expect(answering.locator("#comment-input")).to_have_value(SECRET)


def test_answers_that_cannot_be_sent_are_hidden(answering, maya):
    answering.route(SAVES, lambda route: route.abort())
    answering.clock.run_for("15:30")
    expect(answering.locator("#notice")).to_contain_text("not saved yet")
    expect(answering.locator("#notice-access-code")).to_be_visible()
    is_hidden(answering)
    answering.unroute_all()
    # The next attempt comes within a minute, and the last pause is short. Time
    # that is moved while the server answers would end the request.
    with answering.expect_request_finished(
        lambda request: "/take/pages/" in request.url
    ):
        for _ in range(7):
            answering.clock.run_for("00:10")
    is_stopped(answering)
    assert answers_of(maya)["comment"] == SECRET


def test_input_in_another_tab_of_the_same_person_counts(answering, maya):
    tab = answering.context.new_page()
    tab.goto("/take/")
    noted = "localStorage.getItem('groundswell active')"
    for _ in range(3):
        answering.clock.run_for("08:00")
        before = answering.evaluate(noted)
        tab.mouse.click(1, 1)
        # Another tab's note takes a moment to arrive.
        eventually(lambda before=before: answering.evaluate(noted) != before)
    expect(answering.get_by_role("alertdialog")).to_be_hidden()
    is_on(answering, 1)


def test_the_review_stops_by_itself_too(answering, maya):
    for n in (2, 3):
        next_page(answering)
        is_on(answering, n)
    next_page(answering)
    answering.wait_for_url("**/take/complete/**")
    expect(answering.locator(".reviewed")).to_contain_text(SECRET)
    answering.clock.run_for("10:30")
    question = answering.get_by_role("alertdialog", name="Are you still there?")
    question.get_by_role("button", name="Continue").click()
    expect(answering.locator(".reviewed")).to_be_visible()
    answering.clock.run_for("15:30")
    is_stopped(answering)
    maya.refresh_from_db()
    assert maya.completed_at is None
