"""*I do not want to take part*, with and without a script, and in a second tab."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from survey.models import Administration, Response
from survey.tests.browser.accessibility import violations
from survey.tests.browser.test_half_answered import next_page
from survey.tests.browser.test_tab import begin, choose, has_status, is_on  # noqa: F401
from survey.tests.conftest import code_of

pytestmark = pytest.mark.django_db(transaction=True)

LINK = "I do not want to take part"


@pytest.fixture(autouse=True)
def allowed(administration) -> None:
    Administration.objects.update(allows_declining=True)


def test_a_person_declines_on_the_first_page_alone(begin, maya):  # noqa: F811
    page = begin()
    link = page.get_by_role("link", name=LINK)
    expect(link).to_be_visible()
    choose(page, "safe", "3")
    next_page(page)
    is_on(page, 2)
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Back").click()
    is_on(page, 1)
    link.click()
    page.wait_for_url("**/take/decline/**")
    assert violations(page) == []
    # A second thought.
    page.get_by_role("link", name="Back to the questions").click()
    is_on(page, 2)
    page.get_by_role("button", name="Back").click()
    is_on(page, 1)
    page.get_by_role("link", name=LINK).click()
    page.get_by_role("button", name=LINK).click()
    expect(page.locator("h1")).to_have_text("You are not taking part")
    assert violations(page) == []
    maya.refresh_from_db()
    assert maya.declined_at is not None

    page.goto("/")
    page.fill("#code", code_of(maya))
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("You decided not to take part")).to_be_visible()


def test_another_device_says_so_and_asks_nobody_to_keep_its_answers(
    begin,  # noqa: F811
    device,
    maya,
):
    page = begin()
    choose(page, "safe", "3")
    next_page(page)
    has_status(page, "saved")
    stored = Response.objects.count()
    second = begin(device())
    second.goto("/take/decline/")
    second.get_by_role("button", name=LINK).click()
    second.wait_for_url("**declined**")
    page.locator("#item-promise input").check()
    page.get_by_role("button", name="Next").click()
    notice = page.locator("#notice")
    expect(notice.locator("h2")).to_have_text("You decided not to take part")
    expect(notice).to_contain_text("You can close this page.")
    assert "show the code below" not in notice.inner_text()
    assert Response.objects.count() == stored


def test_without_a_script_it_is_a_link_and_a_form(begin, device, maya):  # noqa: F811
    context = device(java_script_enabled=False)
    page = context.new_page()
    page.goto("/?language=en")
    page.fill("#code", code_of(maya))
    page.get_by_role("button", name="Start").click()
    # The page that needs scripts leads there by itself.
    page.wait_for_url("**/take/plain/**")
    page.goto("/take/plain/?language=en")
    page.get_by_role("link", name=LINK).click()
    page.get_by_role("button", name=LINK).click()
    expect(page.locator("h1")).to_have_text("You are not taking part")
    maya.refresh_from_db()
    assert maya.declined_at is not None
