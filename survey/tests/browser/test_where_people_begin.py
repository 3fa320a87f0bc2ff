"""Where a survey begins and goes on, which pages count, and what time rules read."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from settings.tests.patience import eventually
from survey.models import Administration
from survey.tests.browser.person import press_next
from survey.tests.browser.test_tab import answers_of, choose, has_status, is_on
from survey.tests.browser.test_two_people import log_in
from survey.tests.conftest import enrol, open_now, publish_items

pytestmark = pytest.mark.django_db(transaction=True)

AGREE = {"kind": "select_one", "option_set": "agree"}
# An introduction, a question, a page for few, notes between questions, and thanks.
PAGES: list[dict[str, dict[str, Any]]] = [
    {"confidential": {"kind": "note"}},
    {"safe": AGREE},
    {"detail": {"kind": "text", "relevant": ["=", ["$", "safe"], "1"]}},
    {"halfway": {"kind": "note"}},
    {"last": {"kind": "text"}},
    {"thanks": {"kind": "note"}},
]


@pytest.fixture
def administration(transactional_db: None, lincoln) -> Administration:
    return open_now(publish_items(PAGES))


@pytest.fixture
def person(administration, lincoln):
    return enrol(administration, lincoln, language="en")


@pytest.fixture
def begin(device, person) -> Callable[[], Page]:
    def begin(**options: Any) -> Page:
        page = device(**options).new_page()
        log_in(page, person)
        return page

    return begin


def progress_of(page: Page) -> str:
    return page.locator("#progress-text, .progress-text").first.inner_text()


def test_a_first_visit_begins_with_the_introduction(begin, person):
    first = begin()
    is_on(first, 1)
    press_next(first)
    is_on(first, 2)
    # Nothing was answered, so another device begins at the introduction too.
    second = begin()
    is_on(second, 1)
    press_next(second)
    choose(second, "safe", "3")
    press_next(second)
    is_on(second, 4)
    has_status(second, "saved")
    # Once something is stored, at the first page with an open question.
    is_on(begin(), 5)


def test_pages_that_are_not_seen_are_not_counted(begin, person):
    page = begin()
    seen = [progress_of(page)]
    for n, answer in ((1, None), (2, "3"), (4, None), (5, None)):
        is_on(page, n)
        if answer:
            choose(page, "safe", answer)
        press_next(page)
        expect(page.locator("#page section.page")).not_to_have_attribute(
            "data-page", str(n)
        )
        seen.append(progress_of(page))
    assert seen == [f"Page {n} of 5" for n in range(1, 6)]
    press_next(page)
    page.click("#finish-button")
    expect(page.locator(".lead")).to_contain_text("All 5 pages saved at")


def test_an_answer_that_opens_a_page_counts_it(begin):
    page = begin()
    press_next(page)
    is_on(page, 2)
    assert progress_of(page) == "Page 2 of 5"
    choose(page, "safe", "1")
    expect(page.locator("#progress-text")).to_have_text("Page 2 of 6")
    assert page.locator("#progress").get_attribute("max") == "6"


def shows_yesterday(route: Route) -> None:
    """Answer as a server whose clock is five seconds before midnight."""
    response = route.fetch()
    yesterday = timezone.localtime() - timedelta(days=1)
    late = yesterday.replace(hour=23, minute=59, second=55)
    text = re.sub(
        r'"now": "[^"]+"',
        f'"now": "{late.isoformat(timespec="seconds")}"',
        response.text(),
    )
    route.fulfill(response=response, body=text)


def test_a_tab_that_is_open_over_midnight_knows_the_new_day(device, lincoln):
    today = timezone.localdate().isoformat()
    is_today = ["=", ["today"], today]
    pages = [
        {"safe": AGREE, "now_asked": {"kind": "text", "relevant": is_today}},
        {"only_today": {"kind": "text", "relevant": is_today}},
        {"last": {"kind": "text"}},
    ]
    person = enrol(open_now(publish_items(pages)), lincoln, language="en")
    page = device().new_page()
    log_in(page, person)
    page.route(re.compile(r"/take/(\?|$)"), shows_yesterday)
    page.goto("/take/")
    is_on(page, 1)
    assert progress_of(page) == "Page 1 of 2"
    expect(page.locator("#item-now_asked")).to_be_hidden()
    page.wait_for_timeout(5500)
    press_next(page)
    # It is asked before the page is passed, and not stored as skipped.
    expect(page.locator("#now_asked-input")).to_be_focused()
    assert "now_asked" not in answers_of(person)
    press_next(page)
    is_on(page, 2)
    assert progress_of(page) == "Page 2 of 3"
    eventually(lambda: answers_of(person) == {"safe": None, "now_asked": None})
