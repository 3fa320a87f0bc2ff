"""Log in to the demonstration as a coordinator, and photograph pages.

Started by `provisioning/run handbook`, with the password on standard input. Finds
its way by addresses instead of labels, which differ between languages.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright

WINDOW: ViewportSize = {"width": 1024, "height": 680}
QUALITY = 82
# Down to the button that prints a card again; its image is reduced.
WINDOWS: dict[str, ViewportSize] = {"people": {"width": 1265, "height": 840}}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def main(address: str, email: str, language: str, folder: Path) -> None:
    password = sys.stdin.read()
    browser_path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        context = browser.new_context(
            base_url=address, viewport=WINDOW, locale=language, color_scheme="light"
        )
        page = context.new_page()
        log_in(page, email, password)
        folder.mkdir(parents=True, exist_ok=True)
        for name, place in addresses(page).items():
            page.set_viewport_size(WINDOWS.get(name, WINDOW))
            page.goto(place)
            # Figures that are drawn, or fetched once the page is there.
            page.wait_for_load_state("networkidle")
            save(page.screenshot(), folder / f"{name}.webp")
        browser.close()


def log_in(page: Page, email: str, password: str) -> None:
    page.goto("/console/account/login/")
    page.fill("input[name=login]", email)
    page.fill("input[name=password]", password)
    page.press("input[name=password]", "Enter")
    page.wait_for_url(lambda url: url.endswith("/console/"))


def addresses(page: Page) -> dict[str, str]:
    cards = link(page, r"/administrations/\d+/cards/$")
    administration = cards.removesuffix("cards/")
    places = {
        "before": f"{administration}roster/",
        "cards": cards,
        "rates": link(page, r"/rates/schools/\d+/\?"),
        "after": link(page, r"/rates/schools/\d+/\?", within=".home-closed"),
    }
    page.goto(f"{administration}people/?state=not-started")
    return {**places, "people": link(page, r"/people/\d+/$", within="table")}


def link(page: Page, pattern: str, within: str = "main") -> str:
    """Return the address of the first link that matches, below the host."""
    links: list[str] = page.locator(f"{within} a").evaluate_all(
        "all => all.map((one) => one.getAttribute('href'))"
    )
    return next(href for href in links if href and re.search(pattern, href))


def save(screenshot: bytes, path: Path) -> None:
    image = Image.open(io.BytesIO(screenshot)).convert("RGB")
    size = (WINDOW["width"], WINDOW["height"])
    image.resize(size).save(path, quality=QUALITY, method=6)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
