"""The first page over a school's line, and what it may talk to."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

from survey.tests.browser.person import Person

pytestmark = pytest.mark.django_db(transaction=True)

FIRST_PAGE = 100 * 1024


def transferred(page: Page) -> dict[str, int]:
    """Bytes over the wire of the document and all it loaded, by address."""
    entries = page.evaluate(
        """() => ["navigation", "resource"].flatMap((kind) =>
            performance.getEntriesByType(kind).map((e) => [e.name, e.transferSize]))"""
    )
    return dict(entries)


@pytest.fixture
def first_visit(device, maya):
    page = device().new_page()
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.goto("/")
    page.wait_for_load_state("networkidle")
    # The survey page takes the files of the login page from the cache.
    weights = transferred(page)
    Person(page).log_in(maya)
    page.wait_for_load_state("networkidle")
    for name, size in transferred(page).items():
        weights[name] = weights.get(name, 0) + size
    return page, hosts, weights


def test_the_first_page_is_small_and_loads_nothing_from_other_hosts(
    first_visit, server
):
    _, hosts, weights = first_visit
    # The sum includes the login page and all prefetched pages.
    print(weights)
    assert any("/static/CACHE/js/" in name for name in weights)
    assert any("/static/CACHE/css/" in name for name in weights if weights[name])
    assert sum(weights.values()) < FIRST_PAGE
    assert hosts == {f"127.0.0.1:{server.port}"}


def test_an_injected_script_does_not_run(first_visit):
    page, *_ = first_visit
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.slipped = true";
            document.body.append(script);
            document.body.insertAdjacentHTML(
                "beforeend", "<img src=x onerror='window.slipped = true'>");
        }"""
    )
    page.wait_for_timeout(300)
    assert page.evaluate("window.slipped") is None


def test_scripts_cannot_read_cookies(first_visit):
    page, *_ = first_visit
    cookies = {cookie["name"]: cookie for cookie in page.context.cookies()}
    assert cookies["sessionid"]["httpOnly"]
    assert cookies["sessionid"]["sameSite"] == "Lax"
