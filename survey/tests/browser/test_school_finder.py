"""Parents find their school in Chromium, and begin with the link that it publishes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from accounts.models import SchoolListing
from accounts.school_directory import refresh_words
from survey.fieldwork.open_codes.codes import code_of, publish_open_code
from survey.models import Respondent, Response
from survey.people.access_codes import format_code
from survey.taking.messages import messages_in
from survey.tests.browser.accessibility import scrolls_sideways, violations
from survey.tests.browser.conftest import PHONE
from survey.tests.browser.person import Person
from survey.tests.open_codes.cast import open_code, open_to_parents

pytestmark = pytest.mark.django_db(transaction=True)
KNOWN = {"age": "12", "bus": "15", "promise": "OK"}
HERE = {"latitude": 39.801, "longitude": -89.652}


@pytest.fixture
def code(transactional_db, lincoln, roosevelt):
    places = (
        (lincoln, "Springfield", 39.8, -89.65),
        (roosevelt, "Peoria", 40.7, -89.6),
    )
    for school, city, latitude, longitude in places:
        SchoolListing.objects.filter(pk=school.pk).update(
            city=city, state="IL", latitude=latitude, longitude=longitude
        )
    SchoolListing.objects.filter(pk=lincoln.pk).update(
        contact_name="School office", contact_phone="217 555 0134"
    )
    refresh_words()
    return publish_open_code(code=open_code(open_to_parents(), lincoln), by="a test")


def begin(page: Page) -> str:
    """Choose Begin in Spanish, and return the personal code."""
    page.get_by_role("button", name="Empezar").click()
    page.wait_for_selector(".lead .code")
    return page.locator(".lead .code").inner_text()


def test_a_parent_finds_the_school_begins_in_spanish_and_continues_on_a_phone(
    device, server, code
):
    page = device().new_page()
    page.goto(f"{server.url}/schools/")
    page.get_by_role("link", name="Español").click()
    page.get_by_role("searchbox").fill("Sprinfield")
    page.get_by_role("button", name="Buscar").click()
    page.get_by_role("link", name="Lincoln").click()
    expect(page.get_by_text("Para madres, padres y tutores")).to_be_visible()
    expect(page.get_by_text("217 555 0134")).to_be_visible()
    assert violations(page) == []
    assert page.context.cookies() == []

    page.get_by_role("link", name="Empezar esta encuesta").click()
    expect(page.locator("h1")).to_have_text("Nuestra escuela")
    assert code_of(code) not in page.url.replace("-", "")
    assert not Respondent.objects.exists()
    begin(page)
    questions = messages_in("es")["start_questions"]
    page.locator("#main").get_by_role("link", name=questions).click()
    page.wait_for_selector("#page section.page")
    first = Person(page, seed=5, known=KNOWN)
    first.answer_to_the_end()
    first.finish()
    page.get_by_role("button", name=messages_in("es")["start_another_child"]).click()
    personal = begin(page)

    phone = device(viewport=PHONE, locale="es-US").new_page()
    phone.goto(server.url)
    phone.fill("#code", personal)
    phone.click("button[type=submit]")
    phone.wait_for_selector("#page section.page")
    second = Person(phone, seed=6, known=KNOWN)
    second.answer_page()
    second.next()
    second.sees("saved")
    done, unfinished = Respondent.objects.order_by("pk")
    assert done.completed_at and not unfinished.completed_at
    assert {done.school_id, unfinished.school_id} == {code.school_id}
    assert (done.language, unfinished.language) == ("es", "es")
    assert Response.objects.filter(respondent_id=unfinished.pk).exists()


def test_schools_near_this_device_are_found_on_a_tap(device, server, code):
    context = device(geolocation=HERE, permissions=["geolocation"])
    page = context.new_page()
    page.goto(f"{server.url}/schools/?language=ar")
    page.locator("#near-me").click()
    links = page.locator(".schools li a")
    expect(links).to_have_text(["Lincoln", "Roosevelt"])
    # Neither the address nor the server's log has more than the part of town.
    assert "lat=39.8&lon=-89.65" in page.url
    assert violations(page) == [] and page.locator("html").get_attribute("dir") == "rtl"


def test_the_location_is_not_asked_for_before_the_tap(device, server, code):
    page = device().new_page()
    page.add_init_script(
        "navigator.geolocation.getCurrentPosition = () => { window.asked = true; }"
    )
    page.goto(f"{server.url}/schools/")
    expect(page.locator("#near-me")).to_be_visible()
    assert page.evaluate("window.asked") is None
    page.locator("#near-me").click()
    assert page.evaluate("window.asked") is True


@pytest.mark.parametrize("permissions", [[], ["geolocation"]])
def test_a_refused_or_missing_location_is_explained(device, server, code, permissions):
    context = device(permissions=permissions)
    if permissions:
        # Allowed, and not available.
        context.set_geolocation(None)
    page = context.new_page()
    page.goto(f"{server.url}/schools/")
    page.locator("#near-me").click()
    # Chromium itself may take as long as the script waits.
    status = page.locator("#near-me-status")
    expect(status).to_contain_text("not available", timeout=20_000)
    page.get_by_role("searchbox").fill("lincoln")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("link", name="Lincoln")).to_be_visible()


def test_a_school_is_found_and_begun_without_javascript(device, server, code):
    page = device(java_script_enabled=False, viewport=PHONE).new_page()
    page.goto(f"{server.url}/schools/")
    expect(page.locator("#near-me")).to_be_hidden()
    page.get_by_role("searchbox").fill("SPRINGFIELD")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="Lincoln").click()
    letters = page.locator("b.code").inner_text()
    assert letters == format_code(code_of(code))
    page.get_by_role("link", name="Begin this survey").click()
    page.fill("#code", letters)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("button", name="Begin")).to_be_visible()


@pytest.mark.parametrize("language", ["en", "ar"])
def test_the_pages_of_schools_fit_a_phone(device, server, code, language):
    page = device(viewport=PHONE).new_page()
    for path in ("?q=lincoln", "?lat=39.80&lon=-89.65", f"{code.school_id}/?"):
        page.goto(f"{server.url}/schools/{path}&language={language}")
        assert violations(page) == [] and not scrolls_sideways(page), path
