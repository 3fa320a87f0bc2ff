"""Text at twice its size on a phone."""

from __future__ import annotations

import pytest

from survey.tests.browser.conftest import PHONE
from survey.tests.browser.test_finishing import begin_on
from survey.tests.browser.test_journey import maya, published  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)

# The words of questions and answers that are on more than one line.
BROKEN_WORDS = """() => {
  const broken = [];
  for (const element of document.querySelectorAll("#page .label-text, #page .option > span")) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      for (const { index, 0: word } of walker.currentNode.data.matchAll(/[^\\s-]+/g)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, index);
        range.setEnd(walker.currentNode, index + word.length);
        const lines = new Set([...range.getClientRects()].map(({ top }) => top));
        if (lines.size > 1) broken.push(word);
      }
    }
  }
  return broken;
}"""


def test_text_at_twice_its_size_breaks_no_words(device, maya):  # noqa: F811
    page = begin_on(device(viewport=PHONE, bypass_csp=True), maya)
    for n in range(1, 5):
        page.goto("about:blank")
        page.goto(f"/take/#page-{n}/any")
        page.wait_for_selector(f"section.page[data-page='{n}']")
        page.add_style_tag(content="html { font-size: 200% }")
        assert (n, page.evaluate(BROKEN_WORDS)) == (n, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
