"""Check pages for accessibility: violations of WCAG 2.2 AA that axe finds."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error, Page

from settings.tests.patience import patience

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# One node per result of the other types, which halves the time.
OPTIONS = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    # Landmarks of one kind need names, so that a list of them tells them apart.
    "rules": {"landmark-unique": {"enabled": True}},
    "resultTypes": ["violations"],
}
# Fading colors and parts that htmx is replacing must not be judged halfway.
STILL = """() =>
  !document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")
  && document.getAnimations().every(({ playState }) => playState !== "running")
"""
RUN = f"axe.run({json.dumps(OPTIONS)}).then(({{ violations }}) => violations)"


def violations(page: Page) -> list[str]:
    for attempt in range(3):
        page.wait_for_load_state()
        try:
            return _violations(page)
        except Error:
            # The page may load itself again during the check, as it does when a
            # job has ended. Then the new document is checked.
            if attempt == 2:
                raise
    raise AssertionError


def _violations(page: Page) -> list[str]:
    # Not wait_for_function(), which the page's policy forbids to poll.
    for _ in range(round(patience(10) / 0.02)):
        if page.evaluate(STILL):
            break
        page.wait_for_timeout(20)
    else:
        raise AssertionError("The page does not come to rest.")
    # htmx changes a document without reloading it, so axe may be there already.
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(quick_axe())
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']} ({page.url})"
        for rule in page.evaluate(RUN)
        for node in rule["nodes"]
    ]


@cache
def quick_axe() -> str:
    """Return a script that defines axe, with its weak maps and colors replaced."""
    quick = Path(__file__).with_name("quick_axe.js").read_text()
    axe = f"function (WeakMap, WeakSet) {{ {Axe().axe_script}\n}}"
    return f"({quick})({axe})"


def violations_on(page: Page, screens: list[dict]) -> list[str]:
    """Return what is wrong with a page on these screens, sideways scrolling too.

    The window and its colors change, and the page is not loaded again. It stays on
    the last screen.
    """
    problems = []
    for screen in screens:
        page.set_viewport_size(screen["viewport"])
        page.emulate_media(
            color_scheme=screen.get("color_scheme", "light"),
            forced_colors=screen.get("forced_colors", "none"),
        )
        problems += [f"{screen}: {violation}" for violation in violations(page)]
        if scrolls_sideways(page):
            problems.append(f"{screen}: {page.url} scrolls sideways")
    return problems


def check(page: Page, name: str) -> None:
    """Check a page, and keep a picture of it in the folder SHOTS, if it is given."""
    if folder := os.environ.get("SHOTS"):
        width = page.viewport_size["width"] if page.viewport_size else 0
        page.screenshot(path=f"{folder}/{width}-{name}.png", full_page=True)
    problems = violations(page)
    assert not problems, (name, problems)
    assert (name, scrolls_sideways(page)) == (name, False)


def check_both(page: Page, name: str) -> None:
    """Check a page at a desk and on a phone, and set its own size again."""
    normal = page.viewport_size
    for size in (DESK, PHONE):
        page.set_viewport_size(size)
        check(page, name)
    page.set_viewport_size(normal)


def scrolls_sideways(page: Page) -> bool:
    return page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
