"""The help site on a screen and on paper."""

from __future__ import annotations

from collections.abc import Callable

import pypdfium2
import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from accounts.console.help_site import site_files
from survey.tests.browser.accessibility import scrolls_sideways, violations
from survey.tests.browser.test_cards_journey import DESK, PHONE, open_console

pytestmark = pytest.mark.django_db(transaction=True)

HANDBOOK = "/help/en/coordinators/"
SUBJECTS = [
    "1. Before the survey",
    "2. Cards and codes",
    "3. The survey days",
    "4. People: add, correct, withdraw, opt out",
    "5. After the survey",
]
# The paragraphs between two headings, joined.
TEXTS = """() => [...document.querySelectorAll("main h2")].map((heading) => {
  let text = "";
  for (let next = heading.nextElementSibling; next && next.tagName !== "H2";
       next = next.nextElementSibling) {
    if (next.tagName === "P") text += ` ${next.innerText}`;
  }
  return text.trim();
})"""


def opened(device: Callable, server, user, viewport=DESK, **options) -> Page:
    context = device(viewport=viewport, **options)
    page = open_console(context, user, server.url)
    page.goto("/console/")
    return page


@pytest.mark.parametrize("viewport", [DESK, PHONE])
def test_the_help_is_in_the_account_menu_and_behind_the_help_of_a_screen(
    device, server, staff, viewport
):
    page = opened(device, server, staff.chen, viewport)
    for start, menu, link, goal in (
        ("/console/", ".console-me", "Help pages", "/help/en/"),
        ("/console/rosters/", ".help", "Read more", "/help/en/administrators/people/"),
    ):
        page.goto(start)
        page.locator(f"{menu} > summary").click()
        page.locator(f"{menu} > .menu-panel").get_by_role("link", name=link).click()
        page.wait_for_url(f"**{goal}*")
        expect(page.locator("h1")).to_be_visible()


def test_all_pages_are_accessible_and_fit_a_phone(device, server, staff):
    page = opened(device, server, staff.chen, PHONE, color_scheme="dark")
    addresses = [name for name in site_files() if name.endswith("index.html")]
    assert len(addresses) > 25
    for name in addresses:
        page.goto(f"/help/{name.removesuffix('index.html')}")
        assert (name, violations(page)) == (name, [])
        assert (name, scrolls_sideways(page)) == (name, False)
    page.set_viewport_size(DESK)
    page.goto("/help/en/security/data/")
    assert violations(page) == []


def test_the_search_finds_sections_by_what_people_call_them(device, server, staff):
    page = opened(device, server, staff.chen)
    page.goto("/help/en/")
    page.get_by_role("searchbox").fill("lost card")
    expect(page.locator(".matches")).to_contain_text("2. Cards and codes")
    # Words of the heading come before those of the text.
    page.get_by_role("searchbox").fill("cards codes")
    link = page.locator(".matches").get_by_role("link").first
    expect(link).to_have_text("2. Cards and codes")
    assert violations(page) == []
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{HANDBOOK}#cards")
    page.goto("/help/es/")
    page.get_by_role("searchbox").fill("preparacion")
    expect(page.locator(".matches")).to_contain_text("1. Antes de la encuesta")
    page.get_by_role("searchbox").fill("zzz")
    expect(page.locator(".matches")).to_have_text("Nada coincide con esta búsqueda.")
    page.keyboard.press("Escape")
    expect(page.locator(".matches")).to_be_hidden()


def test_without_scripts_there_is_no_search_and_everything_else(device, server, staff):
    page = opened(device, server, staff.chen, java_script_enabled=False)
    page.goto(HANDBOOK)
    expect(page.locator(".search")).to_be_hidden()
    page.get_by_role("link", name="For operators").first.click()
    expect(page.locator("h1")).to_have_text("For operators")


def test_images_are_there_and_have_their_size(device, server, staff):
    page = opened(device, server, staff.chen)
    for language in ("en", "es"):
        page.goto(f"/help/{language}/coordinators/")
        images = page.locator("main img")
        expect(images).to_have_count(5)
        for image in images.all():
            image.scroll_into_view_if_needed()
            expect(image).to_have_js_property("complete", True)
            size = "(one) => [one.naturalWidth, one.naturalHeight]"
            width, height = image.evaluate(size)
            assert [str(width), str(height)] == [
                image.get_attribute(name) for name in ("width", "height")
            ]


def test_each_language_has_all_images():
    folders = sorted((settings.BASE_DIR / "docs/help").glob("*/coordinators/images"))
    names = [sorted(path.name for path in folder.iterdir()) for folder in folders]
    assert len(names) == 2 and len(names[0]) == 5
    assert names[0] == names[1]


def test_the_handbook_is_printed_on_five_pages(device, server, staff):
    page = opened(device, server, staff.chen)
    page.goto(HANDBOOK)
    for paper in ("A4", "Letter"):
        file = page.pdf(format=paper, prefer_css_page_size=True)
        # Where letters are moved closer, spaces get lost.
        texts = [
            sheet.get_textpage().get_text_range().replace(" ", "")
            for sheet in pypdfium2.PdfDocument(file)
        ]
        assert len(texts) == 5
        for text, subject in zip(texts, SUBJECTS, strict=True):
            subjects = [name for name in SUBJECTS if name.replace(" ", "") in text]
            assert subjects == [subject]


def test_each_subject_of_the_handbook_has_120_to_180_words(device, server, staff):
    page = opened(device, server, staff.chen)
    page.goto(HANDBOOK)
    texts = page.evaluate(TEXTS)
    assert len(texts) == 5
    for subject, text in zip(SUBJECTS, texts, strict=True):
        assert 120 <= len(text.split()) <= 180, subject
