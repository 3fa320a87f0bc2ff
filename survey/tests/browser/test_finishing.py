"""Finishing waits for the network, and survives a reload and a lost session."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Response, Route, expect

from settings.tests.patience import patience
from survey.models import Administration, Respondent
from survey.tests.browser.test_half_answered import next_page
from survey.tests.browser.test_tab import begin, choose, is_on  # noqa: F401
from survey.tests.conftest import code_of

pytestmark = pytest.mark.django_db(transaction=True)

FINISH = "**/take/complete/"


@pytest.fixture
def at_review(begin) -> Page:  # noqa: F811
    page = begin()
    choose(page, "safe", "3")
    for n in (2, 3):
        next_page(page)
        is_on(page, n)
    next_page(page)
    page.wait_for_url("**/take/complete/**")
    return page


def finished(respondent: Respondent) -> bool:
    respondent.refresh_from_db()
    return respondent.completed_at is not None


def thanked(page: Page) -> None:
    expect(page.locator(".done")).to_be_visible(timeout=patience(20) * 1000)


def test_finish_waits_for_the_network(at_review, maya):
    at_review.context.set_offline(True)
    at_review.click("#finish-button")
    status = at_review.locator("#finishing")
    expect(status).to_contain_text("Not finished yet")
    assert "/take/complete/" in at_review.url
    assert not finished(maya)
    at_review.context.set_offline(False)
    thanked(at_review)
    assert finished(maya)


def test_finish_is_repeated_after_a_reload(at_review, maya):
    def lose(route: Route) -> None:
        if route.request.method == "POST":
            route.abort()
        else:
            route.continue_()

    at_review.route(FINISH, lose)
    at_review.click("#finish-button")
    expect(at_review.locator("#finishing")).to_contain_text("Not finished yet")
    assert not finished(maya)
    reopened = at_review.context.new_page()
    at_review.close()
    reopened.goto("/take/")
    thanked(reopened)
    assert finished(maya)


def test_finish_after_the_session_ended_asks_for_the_code(at_review, maya):
    for name in ("sessionid", "resume"):
        at_review.context.clear_cookies(name=name)
    at_review.click("#finish-button")
    notice = at_review.locator("#notice")
    expect(notice).to_contain_text("Enter your code again")
    assert not finished(maya)
    notice.locator("input").fill(code_of(maya))
    notice.get_by_role("button", name="Continue").click()
    thanked(at_review)
    assert finished(maya)


def test_a_filter_that_refuses_with_json_is_network_trouble(at_review, maya):
    def refuse(route: Route) -> None:
        if route.request.method == "POST":
            route.fulfill(status=status, json={"error": "session"})
        else:
            route.continue_()

    def is_refusal(response: Response) -> bool:
        return response.status == status

    at_review.route(FINISH, refuse)
    for status in (401, 403, 409):
        with at_review.expect_response(is_refusal):
            if status == 401:
                at_review.click("#finish-button")
            # Not after a pause, which grows.
            at_review.evaluate("dispatchEvent(new Event('online'))")
        expect(at_review.locator("#finishing")).to_contain_text("Not finished yet")
        expect(at_review.locator("#notice")).to_be_hidden()
        assert not finished(maya)
    at_review.unroute(FINISH)
    thanked(at_review)
    assert finished(maya)


def test_a_reply_that_was_lost_is_no_second_finish(at_review, maya):
    def lose_reply(route: Route) -> None:
        if route.request.method == "POST":
            route.fetch()
            route.abort()
        else:
            route.continue_()

    at_review.route(FINISH, lose_reply, times=1)
    at_review.click("#finish-button")
    thanked(at_review)
    assert finished(maya)
    expect(at_review.locator(".done")).to_contain_text("All 3 pages saved")


def test_answers_that_changed_meanwhile_are_reviewed_again(at_review, begin, maya):  # noqa: F811
    # The review lists what another device has saved.
    Administration.objects.update(replays_answers=True)
    at_review.context.set_offline(True)
    at_review.click("#finish-button")
    expect(at_review.locator("#finishing")).to_contain_text("Not finished yet")
    phone = at_review.context.browser.new_context(
        base_url=at_review.url.split("/take")[0], locale="en-US"
    )
    page = begin_on(phone, maya)
    # Shown after the last page. Another address would be given up before.
    page.wait_for_url("**/take/complete/**")
    page.goto("/take/#page-3/last")
    page.locator("#last-input").fill("one more thing")
    next_page(page)
    page.wait_for_url("**/take/complete/**")
    phone.close()
    at_review.context.set_offline(False)
    expect(at_review.locator(".reviewed")).to_contain_text(
        "one more thing", timeout=patience(20) * 1000
    )
    assert not finished(maya)
    at_review.click("#finish-button")
    thanked(at_review)


def begin_on(context, respondent: Respondent) -> Page:
    page = context.new_page()
    page.goto("/")
    page.fill("#code", code_of(respondent))
    page.click("button[type=submit]")
    page.wait_for_selector("#page section.page, .reviewed")
    # Another address would be given up while this one is loading.
    page.wait_for_load_state()
    return page


def test_the_next_child_is_not_finished_by_the_last_one(at_review, maya, noor):
    at_review.route(
        FINISH,
        lambda route: (
            route.abort() if route.request.method == "POST" else route.continue_()
        ),
    )
    at_review.click("#finish-button")
    expect(at_review.locator("#finishing")).to_contain_text("Not finished yet")
    tab = begin_on(at_review.context, noor)
    tab.wait_for_timeout(1500)
    is_on(tab, 1)
    assert not finished(noor)
    # Her own tab says whose turn it is.
    at_review.unroute_all()
    at_review.evaluate("dispatchEvent(new Event('online'))")
    expect(at_review.locator("main")).to_contain_text(
        "Someone else is using this computer", timeout=patience(20) * 1000
    )
    assert not finished(maya) and not finished(noor)
