"""Plain pages with every kind of question, in a language of each direction."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from survey.tests.browser.accessibility import violations_on
from survey.tests.browser.conftest import LAPTOP, PHONE
from survey.tests.browser.person import Person
from survey.tests.browser.test_accessible import maya, published  # noqa: F401
from survey.tests.browser.test_plain_journey import (
    answer_to_the_end,
    log_in,
    press,
    rows_of,
)
from survey.tests.conftest import code_of, enrol

pytestmark = pytest.mark.django_db(transaction=True)


def look(page: Page) -> None:
    assert violations_on(page, [{"viewport": LAPTOP}, {"viewport": PHONE}]) == []


@pytest.mark.parametrize(("language", "direction"), [("en", "ltr"), ("ar", "rtl")])
@pytest.mark.usefixtures("published")
def test_plain_pages_are_accessible(device, maya, language, direction):  # noqa: F811
    # axe needs scripts; the pages have none of their own.
    page = device(bypass_csp=True).new_page()
    page.goto(f"/?language={language}")
    page.fill("#code", code_of(maya))
    page.click("button[type=submit]")
    page.wait_for_selector("#page section.page")
    page.goto(f"/take/plain/?language={language}")
    expect(page.locator("html")).to_have_attribute("dir", direction)
    for _ in range(3):
        look(page)
        press(page, "next")
        look(page)
        if page.locator(".error-summary").count():
            for item in page.locator(".item.invalid").all():
                item.locator("input").first.check()
            press(page, "next")
    look(page)
    assert "/take/complete/" in page.url


def test_every_kind_is_stored_as_with_javascript(
    device,
    maya,  # noqa: F811
    published,  # noqa: F811
    roosevelt,
):
    noor = enrol(maya.administration, roosevelt, language="en")
    person = Person(device().new_page(), seed=3)
    person.skips = 0
    person.log_in(maya)
    person.answer_to_the_end()
    page = device(java_script_enabled=False).new_page()
    log_in(page, noor)
    answer_to_the_end(page, rows_of(maya))
    assert rows_of(noor) == rows_of(maya)
    assert sum(state == "a" for state, _ in rows_of(noor).values()) > 15
