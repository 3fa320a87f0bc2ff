"""What keeps somebody from using a page: WCAG 2.1 AA, as far as axe sees it."""

from __future__ import annotations

import json

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# Of all else that axe looked at, one node is enough: that is half its time.
OPTIONS = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    "resultTypes": ["violations"],
}
# Colours that are still fading would be judged halfway, and so would a part
# that is being replaced.
STILL = """() =>
  !document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")
  && document.getAnimations().every(({ playState }) => playState !== "running")
"""
RUN = f"axe.run({json.dumps(OPTIONS)}).then(({{ violations }}) => violations)"


def violations(page: Page) -> list[str]:
    page.wait_for_function(STILL)
    # It stays in a document that changes without being left.
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(Axe().axe_script)
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']} ({page.url})"
        for rule in page.evaluate(RUN)
        for node in rule["nodes"]
    ]


def scrolls_sideways(page: Page) -> bool:
    return page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
