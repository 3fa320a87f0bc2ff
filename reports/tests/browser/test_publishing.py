"""An administrator publishes results, and a parent opens the page of a school."""

from __future__ import annotations

import pypdfium2
import pytest
from playwright.sync_api import expect

from reports.models import Publication
from reports.publishing.publications import withdraw
from reports.tests.console.scores.conftest import (  # noqa: F401
    answered,
    published_in_three_languages,
    scored,
)
from reports.tests.scores.conftest import closed
from survey.tests.browser.accessibility import (
    scrolls_sideways,
    violations,
    violations_on,
)
from survey.work import jobs

pytestmark = pytest.mark.django_db(transaction=True)
PHONE = {"viewport": {"width": 390, "height": 844}}
BOTH = [PHONE, {**PHONE, "color_scheme": "dark"}]


@pytest.fixture
def fall(transactional_db, staff):
    administration = closed(published_in_three_languages(), "fall-2026")
    answered(administration, staff.lincoln, 60, 1, shift=0.5)
    answered(administration, staff.washington, 40, 2, finished=15)
    answered(administration, staff.roosevelt, 40, 3, shift=-0.5)
    return scored(administration)


def open_everything(page):
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")


def test_an_administrator_publishes_and_a_parent_reads(at_screen, device, staff, fall):
    page = at_screen(staff.state)
    page.goto(f"/console/results/{fall.pk}/")
    page.get_by_role("link", name="Publish results").click()
    assert violations(page) == []
    page.get_by_label("School").fill("lincoln")
    page.get_by_role("button", name="Find a school to preview").click()
    page.get_by_role("link", name="Lincoln").click()
    expect(page.get_by_text("Nobody else can see this page")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Lincoln")
    page.get_by_role("link", name="Español").click()
    expect(page.get_by_role("link", name="Escuela segura")).to_be_visible()
    expect(page.get_by_text("Nobody else can see this page")).to_be_visible()
    open_everything(page)
    assert violations(page) == []
    page.get_by_role("link", name="Back to publishing").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Publish for everybody").click()
    jobs.run(Publication.objects.get().job_id)
    page.reload()
    expect(page.get_by_text("public", exact=True)).to_be_visible()
    assert violations(page) == []

    # A parent's phone, in the dark and without JavaScript.
    phone = device(**PHONE, color_scheme="dark", java_script_enabled=False).new_page()
    phone.goto("/results/")
    phone.get_by_role("link", name="School climate").click()
    phone.get_by_label("Find a school by its name").fill("lincoln")
    phone.get_by_role("button", name="Search").click()
    phone.get_by_role("link", name="Lincoln").click()
    expect(phone.get_by_role("heading", level=1)).to_have_text("Lincoln")
    expect(phone.get_by_text("60 of 60 finished the survey")).to_be_visible()
    phone.get_by_role("link", name="Español").click()
    expect(phone.get_by_role("link", name="Escuela segura")).to_be_visible()
    assert phone.context.cookies() == []


def test_public_pages_are_accessible(device, server, staff, fall, publish):
    publish(fall)
    page = device(**PHONE).new_page()
    for address in (
        "/results/",
        f"/results/{fall.pk}/",
        f"/results/{fall.pk}/?q=lin",
        f"/results/{fall.pk}/districts/{staff.riverside.pk}/",
        f"/results/{fall.pk}/schools/{staff.lincoln.pk}/?language=es",
        f"/results/{fall.pk}/schools/{staff.lincoln.pk}/?language=ar",
        f"/results/{fall.pk}/schools/{staff.washington.pk}/",
        f"/results/schools/{staff.lincoln.pk}/",
    ):
        page.goto(address)
        open_everything(page)
        assert violations_on(page, BOTH) == []


def test_previews_are_accessible(at_screen, staff, fall):
    page = at_screen(staff.state, **PHONE)
    preview = f"/console/results/{fall.pk}/publish/preview/"
    for address in (
        f"{preview}?language=en&q=lin",
        f"{preview}?language=es&district={staff.riverside.pk}",
        f"{preview}?language=ar&school={staff.lincoln.pk}",
    ):
        page.goto(address)
        open_everything(page)
        # The page has measures, with their tables.
        assert page.locator("[id^=measure-] ~ details table").count() == 2
        assert violations_on(page, BOTH) == []


def test_pages_of_what_is_not_there_are_accessible(
    device, server, staff, fall, publish
):
    publication = publish(fall)
    page = device(**PHONE).new_page()
    unknown = f"/results/{fall.pk}/schools/{staff.washington.pk}/"
    withdrawn = f"/results/{fall.pk}/schools/{staff.lincoln.pk}/"
    for status, address in ((404, unknown), (410, withdrawn)):
        if status == 410:
            withdraw(publication, because="Wrong wave.", by=staff.state)
        for language in ("en", "es", "ar"):
            reply = page.goto(f"{address}?language={language}")
            assert reply.status == status
            assert page.locator("html").get_attribute("lang") == language
            assert violations_on(page, BOTH) == []


def test_a_name_without_spaces_fits_a_phone(device, server, staff, fall, publish):
    publication = publish(fall)
    publication.places.filter(place_id=staff.lincoln.pk).update(name="W" * 200)
    publication.places.filter(place_id=staff.riverside.pk).update(name="M" * 200)
    page = device(**PHONE).new_page()
    for address in (
        f"/results/{fall.pk}/schools/{staff.lincoln.pk}/",
        f"/results/{fall.pk}/districts/{staff.riverside.pk}/?language=ar",
        f"/results/{fall.pk}/",
    ):
        page.goto(address)
        open_everything(page)
        assert not scrolls_sideways(page), address
        assert violations(page) == [], address


def test_everything_of_a_page_is_printed(device, server, staff, fall, publish):
    publish(fall)
    page = device().new_page()
    page.goto(f"/results/{fall.pk}/schools/{staff.lincoln.pk}/")
    # Closed on the screen.
    for part in ("#measure-noise", "#item-q7"):
        expect(page.locator(part)).not_to_be_visible()
    document = pypdfium2.PdfDocument(page.pdf(format="Letter"))
    texts = (
        printed_page.get_textpage().get_text_bounded() for printed_page in document
    )
    printed = " ".join(" ".join(texts).split())
    for text in ("Lincoln", "Noise", "Question <7>", "Level 4", "±"):
        assert text in printed
    assert "Find a school" not in printed
    assert printed.count("Not reached") == 7


def test_publishing_fits_a_phone(at_screen, staff, fall, publish):
    publish(fall)
    page = at_screen(staff.state, **PHONE, color_scheme="dark")
    page.goto(f"/console/results/{fall.pk}/publish/")
    assert violations(page) == []
    assert not scrolls_sideways(page)
    page.get_by_role("link", name="Withdraw").click()
    assert violations(page) == []
    assert not scrolls_sideways(page)
    page.get_by_label("Reason").fill("Wrong wave.")
    page.get_by_role("button", name="Withdraw results").click()
    expect(page.get_by_text("Within a minute")).to_be_visible()
