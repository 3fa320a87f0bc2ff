"""One tab: double clicks, crashes, refusals and the browser's history."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, Route, expect

from settings.tests.patience import eventually, patience
from survey.models import Respondent
from survey.taking.refusals import refusal
from survey.tests.browser.person import BETWEEN_CLICKS, press_next, stored
from survey.tests.conftest import code_of

# A tab's behaviour does not depend on the database. Replies might, but contract
# tests of saving run on both databases.
pytestmark = pytest.mark.django_db(transaction=True)

SAVES = "**/take/pages/**"
HIDE = """() => {
  Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
  dispatchEvent(new Event("visibilitychange"));
}"""


# Page events are ignored, as when a browser crashes or a battery is empty.
DEAF = """for (const name of ["pagehide", "visibilitychange"]) {
  addEventListener(name, (event) => event.stopImmediatePropagation(), true);
}"""


@pytest.fixture
def begin(device: Callable[..., BrowserContext], maya: Respondent) -> Callable:
    """A tab with Maya's survey; a device that knows her asks for no code."""
    Respondent.objects.filter(pk=maya.pk).update(language="en")

    def begin(context: BrowserContext | None = None) -> Page:
        context = context or device()
        page = context.new_page()
        if context.cookies():
            page.goto("/take/")
        else:
            page.goto("/")
            page.fill("#code", code_of(maya))
            page.click("button[type=submit]")
        page.wait_for_selector("#page section.page")
        return page

    return begin


def answers_of(respondent: Respondent) -> dict[str, str | None]:
    return stored(respondent, respondent.administration.published)


def is_on(page: Page, n: int) -> None:
    expect(page.locator(f"#page section.page[data-page='{n}']")).to_be_visible()


def choose(page: Page, name: str, value: str) -> None:
    page.locator(f"#item-{name} input[value='{value}']").click()


def has_status(page: Page, state: str) -> None:
    expect(page.locator("#status")).to_have_attribute("data-state", state)


def go_to_last_page(page: Page) -> None:
    choose(page, "safe", "3")
    page.click("#next")
    is_on(page, 2)
    press_next(page)
    is_on(page, 3)
    has_status(page, "saved")


def keeps_answers(page: Page) -> None:
    """Wait until the answers of the page on the screen are on the device."""
    # They are written after a pause, to which no element points.
    page.wait_for_timeout(800)
    eventually(lambda: kept_on(page) > 0)


def kept_on(page: Page) -> int:
    """Return how many pages wait in this browser's IndexedDB."""
    return page.evaluate(
        """async () => {
          const request = indexedDB.open("groundswell", 1);
          await new Promise((resolve) => (request.onsuccess = resolve));
          const kept = request.result.transaction("kept").objectStore("kept");
          const count = kept.count();
          await new Promise((resolve) => (count.onsuccess = resolve));
          request.result.close();
          return count.result;
        }"""
    )


def test_a_double_click_on_next_turns_one_page(begin, maya):
    page = begin()
    choose(page, "safe", "3")
    page.dblclick("#next")
    is_on(page, 2)
    page.wait_for_timeout(300)
    is_on(page, 2)
    has_status(page, "saved")
    assert "last" not in answers_of(maya)
    # A later second click is meant for this page.
    press_next(page)
    is_on(page, 3)


# Made at once, like a quick double tap, and delivered after the page changed.
ECHO = """async ([pointerType, detail, away]) => {
  const made = (detail, clientX) =>
    new PointerEvent("click", { bubbles: true, cancelable: true, pointerType, detail, clientX, clientY: 700 });
  document.getElementById("next").dispatchEvent(made(1, 100));
  const echo = made(detail, 100 + away);
  const find = () => document.querySelector("section.page[data-page='2'] input[type=radio], section.page[data-page='2'] input[type=checkbox]");
  while (!find()) await new Promise(requestAnimationFrame);
  find().dispatchEvent(echo);
  return find().checked;
}"""


def test_the_second_click_on_next_answers_no_item_of_the_new_page(begin):
    page = begin()
    choose(page, "safe", "3")
    for pointer, detail, away, answers in (
        ("mouse", 2, 0, False),
        ("mouse", 2, 300, False),
        ("touch", 1, 5, False),
        ("touch", 1, 300, True),
        ("mouse", 1, 5, True),
    ):
        is_on(page, 1)
        page.wait_for_timeout(BETWEEN_CLICKS)
        accepted = page.evaluate(ECHO, [pointer, detail, away])
        assert accepted is answers, (pointer, detail, away)
        page.wait_for_timeout(BETWEEN_CLICKS)
        page.locator("#item-promise input").uncheck()
        page.click("#back")


def test_a_heading_that_is_only_a_number_is_for_screen_readers(begin):
    page = begin()
    heading = page.locator("#page .page-title")
    assert heading.bounding_box()["height"] > 20
    # As a page without a title is rendered.
    heading.evaluate("heading => heading.toggleAttribute('data-numbered')")
    assert heading.bounding_box()["height"] <= 1
    assert page.get_by_role("heading", level=2).first.inner_text()


def test_next_moves_the_focus_to_what_names_the_page_once(begin):
    page = begin()
    choose(page, "safe", "3")
    page.click("#next")
    is_on(page, 2)
    assert page.evaluate("document.activeElement.className") == "page-title"
    assert page.evaluate("scrollY") == 0
    heading = page.locator("#page .page-title")
    expect(heading).to_have_accessible_name("Page 2")
    expect(heading).to_have_accessible_description("Page 2 of 3")
    expect(page.locator("#announce")).to_be_empty()
    assert page.title() == "Page 2 – Our school"
    # The title of the page stays after another language was chosen.
    page.select_option("#language", "es")
    expect(page).to_have_title("Página 2 – Nuestra escuela")


def test_an_unchanged_page_is_sent_once(begin, maya):
    page = begin()
    sent: list[str] = []
    page.on("request", lambda r: r.method == "POST" and sent.append(r.post_data))
    choose(page, "safe", "3")
    page.click("#next")
    is_on(page, 2)
    has_status(page, "saved")
    page.click("#back")
    is_on(page, 1)
    press_next(page)
    is_on(page, 2)
    # Page 2 was only looked at, so it is not saved.
    assert len(sent) == 1
    assert set(answers_of(maya)) == {"safe", "subjects", "age", "why_art", "comment"}


def test_a_tab_that_is_closed_sends_its_answers(begin, maya):
    page = begin()
    choose(page, "safe", "3")
    page.goto("about:blank")
    eventually(lambda: answers_of(maya).get("safe") == "3")


def test_a_tab_in_the_background_sends_its_answers(begin, maya):
    page = begin()
    page.evaluate(HIDE)
    page.wait_for_timeout(300)
    assert answers_of(maya) == {}
    choose(page, "safe", "3")
    page.evaluate(HIDE)
    has_status(page, "saved")
    assert answers_of(maya)["safe"] == "3"


def test_a_browser_that_crashes_keeps_the_page_being_answered(begin, device, maya):
    context = device()
    context.add_init_script(DEAF)
    page = begin(context)
    choose(page, "safe", "3")
    page.fill("#comment-input", "half a sentence")
    keeps_answers(page)
    page.close()
    assert answers_of(maya) == {}
    reopened = begin(context)
    is_on(reopened, 1)
    expect(reopened.locator("#comment-input")).to_have_value("half a sentence")
    expect(reopened.locator("#item-safe input:checked")).to_have_value("3")
    assert answers_of(maya) == {}
    reopened.click("#next")
    has_status(reopened, "saved")
    assert answers_of(maya)["comment"] == "half a sentence"


def test_answers_refused_by_the_server_show_their_page_again(begin, maya):
    page = begin()

    def refuse(route: Route) -> None:
        route.fulfill(status=422, json=refusal("answers", items={"age": "not_whole"}))

    page.route(SAVES, refuse, times=1)
    choose(page, "safe", "3")
    page.fill("#age-input", "12")
    page.click("#next")
    error = page.locator("#age-error")
    expect(error).to_have_text("Please type a whole number, like 7.")
    is_on(page, 1)
    has_status(page, "stopped")
    # Unchanged, it is not sent again, and Next stays on the page.
    press_next(page)
    is_on(page, 1)
    page.fill("#age-input", "13")
    page.click("#next")
    is_on(page, 2)
    has_status(page, "saved")
    assert answers_of(maya)["age"] == "13"


def test_a_page_that_cannot_be_saved_shows_a_code_and_stays(begin, maya):
    page = begin()
    page.route(
        SAVES,
        lambda route: route.fulfill(status=413, json=refusal("too_large")),
        times=1,
    )
    choose(page, "safe", "3")
    page.click("#next")
    notice = page.locator("#notice")
    expect(notice).to_contain_text("Don't close this page")
    expect(notice.locator(".teacher-code")).to_contain_text("413-1-")
    has_status(page, "stopped")
    assert answers_of(maya) == {}
    notice.get_by_role("button", name="Try again").click()
    expect(notice).to_be_hidden()
    has_status(page, "saved")
    assert answers_of(maya)["safe"] == "3"


@pytest.mark.parametrize(
    ("change", "title"),
    [
        ({"completed_at": timezone.now(), "started_at": timezone.now()}, "finished"),
        ({"withdrawn_at": timezone.now()}, "taken off"),
    ],
)
def test_a_survey_that_ended_keeps_the_page_and_shows_why(begin, maya, change, title):
    page = begin()
    Respondent.objects.filter(pk=maya.pk).update(**change)
    choose(page, "safe", "3")
    page.click("#next")
    notice = page.locator("#notice")
    expect(notice).to_contain_text(title)
    expect(notice.locator(".teacher-code")).to_be_visible()
    has_status(page, "stopped")
    is_on(page, 2)
    press_next(page)
    is_on(page, 2)


def close_at(maya: Respondent, moment: datetime) -> None:
    type(maya.administration).objects.filter(pk=maya.administration_id).update(
        opens_at=moment - timedelta(days=1), closes_at=moment
    )


def test_a_survey_that_closes_during_a_session(begin, maya):
    page = begin()
    choose(page, "safe", "3")
    page.click("#next")
    is_on(page, 2)
    has_status(page, "saved")
    close_at(maya, timezone.now() - timedelta(hours=1))
    page.locator("#item-bus input").press("ArrowRight")
    press_next(page)
    notice = page.locator("#notice")
    expect(notice).to_contain_text("This survey has closed")
    expect(notice).to_contain_text("Not saved: page 2.")
    # Nobody is sent to a teacher, who could not help.
    expect(notice).not_to_contain_text("teacher")
    assert "bus" not in answers_of(maya)

    # The end is put off.
    close_at(maya, timezone.now() + timedelta(days=1))
    notice.get_by_role("button", name="Try again").click()
    expect(notice).to_be_hidden()
    has_status(page, "saved")
    assert answers_of(maya)["bus"] == "35"


def test_a_closed_survey_says_until_when_answers_are_accepted(begin, maya):
    # She has started, so that a slow login may come after the end.
    Respondent.objects.filter(pk=maya.pk).update(started_at=timezone.now())
    close_at(maya, timezone.now() + timedelta(seconds=5))
    page = begin()
    notice = page.locator("#notice")
    expect(notice).to_be_visible(timeout=patience(20) * 1000)
    until = page.evaluate(
        "(at) => new Intl.DateTimeFormat('en', {hour: 'numeric', minute: '2-digit'})"
        ".format(new Date(at))",
        (closing_time(maya) + timedelta(minutes=10)).isoformat(),
    )
    expect(notice).to_contain_text(f"still saved until {until}")
    choose(page, "safe", "3")
    page.click("#next")
    is_on(page, 2)
    has_status(page, "saved")
    assert answers_of(maya)["safe"] == "3"


def closing_time(maya: Respondent) -> datetime:
    maya.administration.refresh_from_db()
    return maya.administration.closes_at


def test_a_page_that_loads_late_opens_by_itself(begin):
    context_page = begin()
    # A new browser, which could load only the first page.
    page = context_page.context.browser.new_context(
        base_url=context_page.url.split("/take")[0]
    ).new_page()
    page.context.add_cookies(context_page.context.cookies())
    page.route(re.compile(r"/content/.*/2/$"), lambda route: route.abort())
    page.goto("/take/")
    is_on(page, 1)
    choose(page, "safe", "3")
    page.click("#next")
    expect(page.locator("#page .loading")).to_be_visible()
    page.unroute_all()
    # Pauses between attempts have grown meanwhile.
    page.evaluate("dispatchEvent(new Event('online'))")
    is_on(page, 2)
    page.context.close()


def test_the_reply_of_a_captive_portal_is_not_shown_as_a_page(begin):
    page = begin()
    portal = page.context.browser.new_context(base_url=page.url.split("/take")[0])
    portal.add_cookies(page.context.cookies())
    tab = portal.new_page()
    welcome = {"status": 200, "content_type": "text/html", "body": "<h1>Wifi</h1>"}
    tab.route("**/content/**", lambda route: route.fulfill(**welcome), times=2)
    tab.goto("/take/")
    is_on(tab, 1)
    portal.close()


def test_back_and_forward_turn_pages_and_keep_answers(begin, maya):
    page = begin()
    choose(page, "safe", "3")
    page.click("#next")
    is_on(page, 2)
    assert page.url.endswith("#page-2")
    page.go_back()
    is_on(page, 1)
    expect(page.locator("#item-safe input:checked")).to_have_value("3")
    choose(page, "safe", "1")
    page.go_forward()
    is_on(page, 2)
    has_status(page, "saved")
    assert answers_of(maya)["safe"] == "1"
    # The history has only the page and the tag.
    assert sorted(page.evaluate("Object.keys(history.state)")) == ["page", "tag"]


def test_the_current_page_does_not_depend_on_the_address(begin):
    page = begin()
    choose(page, "safe", "3")
    page.click("#next")
    is_on(page, 2)
    page.evaluate("history.replaceState(null, '', '/take/')")
    page.click("#back")
    is_on(page, 1)


def test_another_childs_page_in_the_history_is_ignored(begin):
    page = begin()
    page.goto("about:blank")
    page.goto("/take/#page-3")
    page.wait_for_selector("#page section.page")
    is_on(page, 1)


def test_a_link_from_the_review_goes_to_its_item(begin):
    page = begin()
    page.goto("about:blank")
    page.goto("/take/#page-3/last")
    is_on(page, 3)
    assert page.evaluate("document.activeElement.id") == "last-input"


def test_the_review_waits_for_the_network_and_opens_by_itself(begin, maya):
    page = begin()
    choose(page, "safe", "3")
    page.click("#next")
    is_on(page, 2)
    press_next(page)
    is_on(page, 3)
    has_status(page, "saved")
    page.context.set_offline(True)
    page.fill("#last-input", "bye")
    expect(page.locator("#next")).to_have_text("Check and finish")
    page.click("#next")
    expect(page.locator("#notice")).to_contain_text("One page is still being saved")
    page.wait_for_timeout(500)
    assert "/take/complete/" not in page.url
    page.context.set_offline(False)
    page.wait_for_url("**/take/complete/**")
    assert answers_of(maya)["last"] == "bye"


def test_finishing_waits_for_answers_of_another_tab(begin, maya):
    page = begin()
    go_to_last_page(page)
    tab = begin(page.context)
    is_on(tab, 3)
    tab.route(SAVES, lambda route: route.abort())
    tab.fill("#last-input", "from the other tab")
    keeps_answers(tab)
    page.click("#next")
    page.wait_for_url("**/take/complete/**")
    expect(page.locator("#waiting")).to_be_visible()
    expect(page.locator("#finish-button")).to_be_disabled()
    # The other tab, which has not shown the page saved here, continues; then
    # this one may finish.
    tab.unroute(SAVES)
    tab.click("#back")
    has_status(tab, "stopped")
    tab.locator("#notice button").first.click()
    has_status(tab, "saved")
    expect(page.locator("#finish-button")).to_be_enabled()
    assert answers_of(maya)["last"] == "from the other tab"


def test_a_page_from_the_back_cache_is_not_shown(begin, maya):
    page = begin()
    choose(page, "safe", "3")
    page.evaluate(
        "dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))"
    )
    assert page.locator("#page section").count() == 0
    with page.expect_navigation():
        page.evaluate(
            "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"
        )
    page.wait_for_selector("#page section.page")
    eventually(lambda: answers_of(maya).get("safe") == "3")


def test_the_key_of_stored_answers_is_not_in_the_document(begin):
    page = begin()
    reply = page.request.get("/take/", headers={"Accept": "application/json"}).json()
    assert len(reply["queueKey"]) == 43
    assert reply["queueKey"] not in page.content()
    shown = page.evaluate(
        "JSON.stringify([localStorage, sessionStorage, history.state])"
    )
    assert reply["queueKey"] not in shown


def test_a_cards_link_fills_in_the_code_and_is_removed_from_the_history(device, maya):
    page = device().new_page()
    page.goto(f"/#{code_of(maya).replace('-', '').lower()}")
    symbols = code_of(maya).replace("-", "")
    grouped = "-".join(symbols[at : at + 4] for at in (0, 4, 8))
    expect(page.locator("#code")).to_have_value(grouped)
    assert "#" not in page.url
    assert page.evaluate("history.length") <= 2


def test_a_code_is_grouped_during_typing(device):
    page = device().new_page()
    page.goto("/")
    page.locator("#code").press_sequentially("abcd2345efgh")
    expect(page.locator("#code")).to_have_value("ABCD-2345-EFGH")
    for _ in range(4):
        page.keyboard.press("Backspace")
    expect(page.locator("#code")).to_have_value("ABCD-2345")
    # Correcting a symbol in the middle does not move the caret.
    page.evaluate("document.getElementById('code').setSelectionRange(2, 3)")
    page.keyboard.type("xy")
    assert page.evaluate("document.getElementById('code').selectionStart") == 4
