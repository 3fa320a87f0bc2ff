"""Tabs and devices of one person that leave something to each other."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect

from settings.tests.patience import eventually
from survey.models import Administration, Response
from survey.tests.browser.person import press_next
from survey.tests.browser.test_tab import (
    DEAF,
    SAVES,
    answers_of,
    begin,  # noqa: F401
    choose,
    go_to_last_page,
    has_status,
    is_on,
    keeps_answers,
    kept_on,
)
from survey.tests.conftest import code_of

# Like test_tab: the journeys run on both databases.
pytestmark = pytest.mark.django_db(transaction=True)

TYPED = "By scooter and then the blue bus with my sister"


def close(page: Page) -> BrowserContext:
    """Close the tab in an open browser; its last save may still be under way."""
    context = page.context
    context.new_page()
    with page.expect_event("close"):
        page.close(run_before_unload=True)
    return context


def go_on(page: Page) -> None:
    """Next, and *Continue here* if that is what the page asks."""
    press_next(page)
    button = page.locator("#notice button:visible")
    saved = page.locator("#status[data-state=saved]")
    expect(button.or_(saved).first).to_be_visible()
    if button.count():
        button.first.click()
    has_status(page, "saved")


def type_comment(page: Page) -> None:
    choose(page, "safe", "3")
    page.wait_for_timeout(700)
    page.locator("#comment-input").press_sequentially(TYPED, delay=40)


def test_the_last_typed_text_survives_a_closed_tab(begin, maya):  # noqa: F811
    page = begin()
    type_comment(page)
    context = close(page)
    eventually(lambda: answers_of(maya).get("comment") == TYPED)
    reopened = begin(context)
    reopened.wait_for_timeout(1500)
    reopened.goto("/take/#page-1/comment")
    expect(reopened.locator("#comment-input")).to_have_value(TYPED)
    choose(reopened, "safe", "2")
    go_on(reopened)
    assert (answers_of(maya)["comment"], answers_of(maya)["safe"]) == (TYPED, "2")


def test_the_last_typed_text_survives_a_reload(begin, maya):  # noqa: F811
    page = begin()
    type_comment(page)
    page.reload()
    page.wait_for_selector("#page section.page")
    page.wait_for_timeout(1500)
    expect(page.locator("#comment-input")).to_have_value(TYPED)
    page.click("#next")
    is_on(page, 2)
    has_status(page, "saved")
    assert not page.locator("#notice").is_visible()
    assert answers_of(maya)["comment"] == TYPED


def test_answers_of_a_closed_tab_do_not_undo_another_device(begin, maya):  # noqa: F811
    Administration.objects.update(replays_answers=True)
    page = begin()
    choose(page, "safe", "1")
    keeps_answers(page)
    context = close(page)
    eventually(lambda: answers_of(maya).get("safe") == "1")
    phone = begin()
    phone.goto("/take/#page-1/safe")
    is_on(phone, 1)
    choose(phone, "safe", "3")
    go_on(phone)
    assert answers_of(maya)["safe"] == "3"

    reopened = begin(context)
    reopened.wait_for_timeout(1500)
    reopened.goto("/take/#page-1/safe")
    is_on(reopened, 1)
    expect(reopened.locator("#item-safe input:checked")).to_have_value("3")
    choose(reopened, "subjects", "art")
    go_on(reopened)
    answers = answers_of(maya)
    assert (answers["safe"], answers["subjects"]) == ("3", "art")


def test_answers_of_a_closed_tab_go_to_a_tab_that_saved_the_page(begin, maya):  # noqa: F811
    first = begin()
    first.route(SAVES, lambda route: route.abort())
    choose(first, "safe", "3")
    first.fill("#age-input", "12")
    press_next(first)
    has_status(first, "waiting")
    second = begin(first.context)
    second.wait_for_timeout(1300)
    second.goto("/take/#page-1/comment")
    second.wait_for_timeout(500)
    # Only the first tab has the age, and could not save it yet.
    expect(second.locator("#age-input")).to_have_value("")
    second.fill("#comment-input", "from the second")
    second.wait_for_timeout(600)
    choose(second, "safe", "3")
    choose(second, "subjects", "art")
    go_on(second)
    first.unroute(SAVES)
    first.evaluate("dispatchEvent(new Event('online'))")
    first.wait_for_timeout(2000)
    first.close(run_before_unload=True)
    eventually(lambda: answers_of(maya).get("age") == "12")
    assert answers_of(maya)["comment"] == "from the second"


def test_a_draft_merges_answers_of_a_closing_tab(begin, maya):  # noqa: F811
    first = begin()
    first.route(SAVES, lambda route: route.abort())
    choose(first, "safe", "3")
    press_next(first)
    has_status(first, "waiting")
    second = begin(first.context)
    second.wait_for_timeout(1300)
    is_on(second, 1)
    second.fill("#comment-input", "from the second")
    keeps_answers(second)
    first.close(run_before_unload=True)
    expect(second.locator("#item-safe input:checked")).to_have_value("3")
    go_on(second)
    eventually(lambda: answers_of(maya).get("comment") == "from the second")
    assert answers_of(maya)["safe"] == "3"


def test_answers_of_an_earlier_person_wait_and_the_login_page_says_so(
    begin,  # noqa: F811
    device,
    maya,
    noor,
):
    """Maya's tab crashes, Noor uses the computer, and Maya comes back."""
    context = device()
    context.add_init_script(DEAF)
    page = begin(context)
    page.route(SAVES, lambda route: route.abort())
    choose(page, "safe", "3")
    page.click("#next")
    has_status(page, "waiting")
    eventually(lambda: kept_on(page) == 1)
    # The device's clock is wrong by years: only the server's time counts.
    page.clock.set_fixed_time(timezone.now() + timedelta(days=4000))
    page.goto("/")
    expect(page.locator("#unsent")).to_be_visible()
    page.unroute(SAVES)
    for respondent, waiting in ((noor, 1), (maya, 0)):
        page.goto("/")
        page.fill("#code", code_of(respondent))
        page.click("button[type=submit]")
        page.wait_for_selector("#page section.page")
        page.wait_for_timeout(1500)
        eventually(lambda waiting=waiting: kept_on(page) == waiting)
    assert answers_of(maya)["safe"] == "3"
    page.goto("/")
    page.wait_for_timeout(500)
    expect(page.locator("#unsent")).to_be_hidden()


def test_what_a_crashed_tab_left_is_sent_before_finishing(begin, device, maya):  # noqa: F811
    context = device()
    page = begin(context)
    go_to_last_page(page)
    press_next(page)
    page.wait_for_url("**/take/complete/**")
    tab = context.new_page()
    tab.add_init_script(DEAF)
    tab.goto("/take/#page-3/last")
    is_on(tab, 3)
    tab.route(SAVES, lambda route: route.abort())
    tab.fill("#last-input", "from the crashed tab")
    press_next(tab)
    has_status(tab, "waiting")
    page.reload()
    expect(page.locator("#finish-button")).to_be_disabled()
    # Through the survey, which sends it, and back.
    with page.expect_navigation(url="**/take/?**"):
        tab.close()
    page.wait_for_url("**/take/complete/**")
    expect(page.locator("#finish-button")).to_be_enabled()
    assert answers_of(maya)["last"] == "from the crashed tab"


def test_answers_that_the_server_lost_are_sent_again_before_the_review(begin, maya):  # noqa: F811
    """A standby without the last commit took the primary's place."""
    page = begin()
    go_to_last_page(page)
    lost = Response.objects.filter(respondent_id=maya.pk)
    assert answers_of(maya)["safe"] == "3"
    lost.delete()
    press_next(page)
    page.wait_for_url("**/take/complete/**")
    assert answers_of(maya)["safe"] == "3"


@pytest.mark.parametrize("how", ["shown again", "retried"])
def test_answers_that_the_server_lost_are_sent_again_when_the_tab_goes_on(
    begin,  # noqa: F811
    device,
    maya,
    how,
):
    context = device()
    # Compares at once, and not within five minutes.
    context.add_init_script("Math.random = () => 0")
    page = begin(context)
    choose(page, "safe", "3")
    press_next(page)
    is_on(page, 2)
    has_status(page, "saved")
    Response.objects.filter(respondent_id=maya.pk).delete()
    if how == "shown again":
        page.evaluate("dispatchEvent(new Event('visibilitychange'))")
    else:
        page.route(SAVES, lambda route: route.abort(), times=1)
        page.locator("#item-bus input").press("ArrowRight")
        press_next(page)
        # The route must not wait for `eventually`, which lets no handler run.
        is_on(page, 3)
        has_status(page, "saved")
    eventually(lambda: answers_of(maya).get("safe") == "3", seconds=20)


def test_a_browser_whose_answers_wait_is_asked_to_keep_them(begin, device):  # noqa: F811
    context = device()
    context.add_init_script(
        "navigator.storage.persist = async () => (globalThis.isAsked = true)"
    )
    page = begin(context)
    page.route(SAVES, lambda route: route.abort())
    choose(page, "safe", "3")
    assert not page.evaluate("globalThis.isAsked")
    press_next(page)
    has_status(page, "waiting")
    assert page.evaluate("globalThis.isAsked")
