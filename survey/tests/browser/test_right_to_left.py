"""Numbers in a survey that is read from right to left."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from survey.tests.browser.test_accessible import maya, published  # noqa: F401
from survey.tests.browser.test_finishing import begin_on

pytestmark = pytest.mark.django_db(transaction=True)

# Where the minus and the 5 of "-0.5" are on the screen.
PLACES = """(element) => {
  const copy = document.createElement("span");
  const { unicodeBidi, direction } = getComputedStyle(element);
  Object.assign(copy.style, { unicodeBidi, direction, display: "inline-block" });
  copy.textContent = "-0.5";
  element.parentNode.append(copy);
  const place = (at) => {
    const range = document.createRange();
    range.setStart(copy.firstChild, at);
    range.setEnd(copy.firstChild, at + 1);
    return range.getBoundingClientRect().left;
  };
  return [place(0), place(3)];
}"""


def minus_is_first(page: Page, selector: str) -> bool:
    minus, five = page.locator(selector).first.evaluate(PLACES)
    return minus < five


@pytest.mark.usefixtures("published")
def test_a_minus_stands_before_its_number(device, maya):  # noqa: F811
    page = begin_on(device(), maya)
    page.select_option("#language", "ar")
    page.wait_for_selector("html[dir=rtl]")
    page.goto("/take/?language=ar#page-2/decimal")
    page.wait_for_selector("section.page[data-page='2']")
    for selector in (".field[inputmode=decimal]", ".range-end", ".range-value"):
        assert minus_is_first(page, selector), selector
    # Without a style of its own the minus would come last.
    assert not minus_is_first(page, ".label-text")
