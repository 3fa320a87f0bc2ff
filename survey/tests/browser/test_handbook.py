"""The handbook on a screen and on paper."""

from __future__ import annotations

import re
from collections.abc import Callable

import pypdfium2
import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from survey.console.handbook import IMAGES
from survey.tests.browser.accessibility import scrolls_sideways, violations
from survey.tests.browser.test_cards_journey import DESK, PHONE, open_console

pytestmark = pytest.mark.django_db(transaction=True)

SUBJECTS = [
    "1. Before the survey",
    "2. Cards and codes",
    "3. The survey days",
    "4. People: add, correct, withdraw, opt out",
    "5. After the survey",
]


def opened(device: Callable, server, user, viewport=DESK, **options) -> Page:
    context = device(viewport=viewport, **options)
    page = open_console(context, user, server.url)
    page.goto("/console/")
    return page


@pytest.mark.parametrize("viewport", [DESK, PHONE])
def test_the_handbook_is_in_the_account_menu_and_in_the_help(
    device, server, staff, viewport
):
    page = opened(device, server, staff.chen, viewport)
    for menu, link in ((".console-me", "Handbook"), (".help", "Handbook for school")):
        page.goto("/console/")
        page.locator(f"{menu} > summary").click()
        page.locator(f"{menu} > .menu-panel").get_by_role("link", name=link).click()
        expect(page.locator("h2")).to_have_text(SUBJECTS)
        assert page.url.endswith("/console/handbook/")
    assert violations(page) == []
    assert scrolls_sideways(page) is False


def test_images_are_there_and_have_their_size(device, server, staff):
    page = opened(device, server, staff.chen)
    page.goto("/console/handbook/")
    images = page.locator(".handbook img")
    expect(images).to_have_count(5)
    for image in images.all():
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("complete", True)
        size = "(one) => [one.naturalWidth, one.naturalHeight, one.width / one.height]"
        width, height, shape = image.evaluate(size)
        assert [str(width), str(height)] == [
            image.get_attribute(name) for name in ("width", "height")
        ]
        assert abs(shape - width / height) < 0.02


def test_each_language_has_all_images():
    template = settings.BASE_DIR / "templates/survey/console/handbook.html"
    named = sorted(re.findall(r"'/(\w+\.webp)'", template.read_text()))
    assert len(named) == 5
    folders = [folder for folder in IMAGES.iterdir() if folder.is_dir()]
    assert "en" in [folder.name for folder in folders]
    for folder in folders:
        assert sorted(path.name for path in folder.iterdir()) == named


def test_the_handbook_is_printed_on_five_pages(device, server, staff):
    page = opened(device, server, staff.chen)
    page.goto("/console/handbook/")
    for paper in ("A4", "Letter"):
        file = page.pdf(format=paper, prefer_css_page_size=True)
        texts = [
            sheet.get_textpage().get_text_range()
            for sheet in pypdfium2.PdfDocument(file)
        ]
        assert len(texts) == 5
        for text, subject in zip(texts, SUBJECTS, strict=True):
            assert [heading for heading in SUBJECTS if heading in text] == [subject]


def test_each_subject_has_120_to_180_words(device, server, staff):
    page = opened(device, server, staff.chen)
    page.goto("/console/handbook/")
    for section in page.locator(".handbook section").all():
        words = " ".join(section.locator("p").all_inner_texts()).split()
        assert 120 <= len(words) <= 180, section.locator("h2").inner_text()
