"""What respondents see of their school: whom to ask for help, name and logo."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from accounts.models import Logo, PlaceSettings, SchoolListing
from survey.taking import places

pytestmark = pytest.mark.django_db
LOGO = "0123456789abcdef0123456789abcdef-96x96"


def help_on(page) -> str:
    _, marker, rest = page.content.decode().partition('data-message="need_help"')
    return rest.split("</footer>")[0] if marker else ""


@pytest.fixture
def school(maya):
    return maya.school


def test_the_nearest_contact_person_is_shown(browser, maya, school):
    browser.log_in(maya)
    assert help_on(browser.get("/take/")) == ""
    PlaceSettings.objects.create(contact_name="State desk", contact_phone="1 800 555")
    assert "State desk" in help_on(browser.get("/take/"))
    PlaceSettings.objects.create(
        district=school.district, contact_email="help@district.example"
    )
    shown = help_on(browser.get("/take/"))
    assert "help@district.example" in shown and "State desk" not in shown
    SchoolListing.objects.filter(school=school).update(
        contact_name="Front <office>", contact_phone="217 555 0134"
    )
    shown = help_on(browser.get("/take/"))
    assert "Front &lt;office&gt;" in shown and 'href="tel:2175550134"' in shown
    assert "district" not in shown
    for path in ("/take/complete/", "/take/plain/"):
        assert "Front &lt;office&gt;" in help_on(browser.get(path, follow=True))


BROKEN = "".join(map(chr, range(1, 32))) + '\x7f\x85\u2028\u202e"\\[,%{}'


@pytest.mark.parametrize("broken", ['"a\x1fb"@example.org', BROKEN])
def test_a_broken_contact_breaks_no_page(browser, maya, school, broken):
    """Forms refuse such texts, but they may be stored from before."""
    SchoolListing.objects.filter(school=school).update(
        contact_name=broken, contact_email=broken, contact_phone=broken[:40]
    )
    PlaceSettings.objects.create(name=broken[:60], contact_name=broken)
    browser.log_in(maya)
    for path in ("/take/", "/take/complete/", "/take/plain/"):
        page = browser.get(path, follow=True)
        assert page.status_code == 200
        assert page.context["place"].contact_email == broken
        assert page.context["place"].name == broken[:60]


def test_another_schools_contact_is_not_shown(browser, maya, school):
    neighbour = school.district.schools.create(code="other", name="Other")
    SchoolListing.objects.filter(school=neighbour).update(contact_name="Other office")
    PlaceSettings.objects.create(school=neighbour)
    browser.log_in(maya)
    assert help_on(browser.get("/take/")) == ""


def test_the_districts_logo_replaces_the_states(browser, maya, school):
    Logo.objects.create(name=LOGO, content=b"png")
    PlaceSettings.objects.create(name="Ohio", logo_id=LOGO)
    browser.log_in(maya)
    page = browser.get("/take/").content.decode()
    assert f'src="/logo/{LOGO}/" alt="Ohio" width="32" height="32"' in page
    PlaceSettings.objects.create(district=school.district, name="Riverside")
    page = browser.get("/take/").content.decode()
    assert f'src="/logo/{LOGO}/" alt="Riverside"' in page


def test_the_start_page_shows_the_state(browser):
    assert "Groundswell" in browser.get("/").content.decode()
    places.forget_place_of_state()
    PlaceSettings.objects.create(name="Ohio", contact_email="help@ohio.example")
    page = browser.get("/")
    assert "<p>Ohio</p>" in page.content.decode()
    assert "help@ohio.example" in help_on(page)
    refused = browser.post("/", {"code": "AAAA-BBBB-CCCC"})
    assert "help@ohio.example" in help_on(refused)
    # Read once in half a minute.
    with CaptureQueriesContext(connection) as queries:
        browser.get("/")
    assert not [query for query in queries if "placesettings" in query["sql"]]


def test_the_start_page_does_not_need_the_database(browser, monkeypatch):
    PlaceSettings.objects.create(name="Ohio")
    assert "<p>Ohio</p>" in browser.get("/").content.decode()

    def away(*args):
        raise OperationalError

    monkeypatch.setattr(QuerySet, "first", away)
    monkeypatch.setattr(places.connection, "close", lambda: None)
    monkeypatch.setattr(places.time, "monotonic", lambda: 10.0**9)
    assert "<p>Ohio</p>" in browser.get("/").content.decode()


def test_the_question_is_in_the_language_of_the_page(browser):
    PlaceSettings.objects.create(contact_name="Oficina", contact_phone="1 800 555")
    assert "ayuda" in help_on(browser.get("/?language=es"))
