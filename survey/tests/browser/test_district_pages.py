"""One visit in a browser: the state's pages, and then those of the district."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from survey.models import Response
from survey.tests.browser.test_finishing import at_review, finished, thanked  # noqa: F401
from survey.tests.browser.test_half_answered import next_page
from survey.tests.browser.test_tab import begin, is_on  # noqa: F401
from survey.tests.conftest import code_of
from survey.tests.taking.test_next_part import create_module

pytestmark = pytest.mark.django_db(transaction=True)

GO_ON = "Go on with these questions"


@pytest.fixture
def module(administration, lincoln):
    return create_module(administration, lincoln.district)


@pytest.fixture
def at_thanks(module, at_review) -> Page:  # noqa: F811
    at_review.click("#finish-button")
    thanked(at_review)
    return at_review


def test_the_districts_pages_follow_in_the_same_visit(at_thanks, maya, module):
    page = at_thanks
    assert finished(maya)
    page.get_by_role("button", name=GO_ON).click()
    page.wait_for_url("**/take/**")
    is_on(page, 1)
    expect(page.locator("#to-review")).to_be_hidden()
    page.get_by_label("About bus_ride").fill("long")
    next_page(page)
    is_on(page, 2)
    next_page(page)
    page.wait_for_url("**/take/complete/**")
    page.click("#finish-button")
    thanked(page)

    expect(page.get_by_role("button", name=GO_ON)).to_have_count(0)
    person = module.respondents.get()
    assert person.completed_at is not None
    rows = Response.objects.filter(respondent_id=person.pk, value="long")
    assert rows.get().administration_id == module.pk


def test_a_break_between_the_parts(at_thanks, maya, module):
    page = at_thanks
    page.get_by_role("button", name=GO_ON).click()
    is_on(page, 1)
    page.get_by_label("About bus_ride").fill("long")
    next_page(page)
    is_on(page, 2)
    page.context.clear_cookies(name="sessionid")
    page.context.clear_cookies(name="resume")

    page.goto("/")
    page.get_by_label("Access code").fill(code_of(maya))
    page.keyboard.press("Enter")
    page.get_by_role("button", name=GO_ON).click()
    is_on(page, 2)


def test_two_quick_clicks(at_thanks, module):
    at_thanks.get_by_role("button", name=GO_ON).dblclick(no_wait_after=True)
    is_on(at_thanks, 1)
    assert module.respondents.count() == 1
