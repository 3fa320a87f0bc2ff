"""Name, logo, color, contact and footer on each page that the public sees."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from django.test import Client

from accounts.console import errors
from accounts.models import Logo, PlaceSettings
from survey.fieldwork.open_codes.codes import code_of
from survey.taking import error_pages, places, unavailable
from survey.tests.conftest import Browser
from survey.tests.open_codes.cast import form_of, open_code, open_to_parents

pytestmark = pytest.mark.django_db
LOGO = "0123456789abcdef0123456789abcdef-96x96"
SHEET = '<link rel="stylesheet" href="/accent/7a1f5c.css">'
PUBLIC = ["/", "/open/", "/schools/", "/about/", "/take/stop/?language=en"]


@pytest.fixture
def ohio(db) -> PlaceSettings:
    Logo.objects.create(name=LOGO, content=b"png")
    return PlaceSettings.objects.create(
        name="Ohio", logo_id=LOGO, accent="#7a1f5c", contact_email="help@ohio.example"
    )


def has_brand(html: str) -> bool:
    parts = (f"/logo/{LOGO}/", SHEET, "help@ohio.example", "Ohio")
    return all(part in html for part in parts)


@pytest.mark.parametrize("path", [*PUBLIC, "/nowhere/"])
def test_public_pages_show_the_state(ohio, path):
    assert has_brand(Client().get(path).content.decode())


@pytest.mark.parametrize("path", PUBLIC)
def test_public_pages_without_a_brand_have_the_same_footer(path):
    html = Client().get(path).content.decode()
    assert "/accent/" not in html
    footer = html.partition("<footer")[2]
    for address in ("/about/?", "/privacy/?", "/accessibility/?"):
        assert address in footer
    for address in ("/schools/?language=en", "/results/?language=en", "/console/"):
        assert address in footer


def test_a_persons_pages_show_their_district(browser, maya, ohio):
    PlaceSettings.objects.create(district=maya.school.district, accent="#0a6375")
    browser.log_in(maya)
    for path in ("/take/", "/take/complete/", "/take/plain/"):
        html = browser.get(path, follow=True).content.decode()
        assert '<link rel="stylesheet" href="/accent/0a6375.css">' in html
        assert f"/logo/{LOGO}/" in html and "help@ohio.example" in html
        assert "/privacy/?" in html.partition("<footer")[2]


def test_pages_of_a_school_before_the_login_show_its_district(lincoln, ohio):
    district = lincoln.district
    PlaceSettings.objects.create(
        district=district, name="Riverside", accent="#0a6375", contact_phone="555 01"
    )
    code = open_code(open_to_parents(), lincoln)
    visitor = Browser()
    form = form_of(visitor, code)
    offer = visitor.post("/open/", {"code": code_of(code)})
    declined = visitor.post("/open/decline/", form)
    visitor.post("/open/begin/", form_of(visitor, code))
    pages = [offer, declined, visitor.get("/open/begun/")]
    pages += [Client().get(f"/schools/{lincoln.pk}/")]
    # From the cache as well.
    pages += [Client().get(f"/schools/?district={district.pk}") for _ in range(2)]
    for page in pages:
        html = page.content.decode()
        assert page.status_code == 200, page
        assert "/accent/0a6375.css" in html and f"/logo/{LOGO}/" in html
        assert "– Riverside</title>" in html and "555 01" in html
        # The district has a contact of its own.
        assert "help@ohio.example" not in html
    for path in ("/schools/", "/open/"):
        assert has_brand(Client().get(path).content.decode())


@pytest.mark.parametrize("handlers", [error_pages, errors])
@pytest.mark.parametrize("path", ["/take/", "/console/surveys/"])
def test_errors_400_and_500_show_the_state_without_the_database(
    rf, ohio, handlers, path, django_assert_num_queries
):
    places.place_of_state()
    with django_assert_num_queries(0):
        replies = [
            handlers.bad_request(rf.get(path), ValueError()),
            handlers.server_error(rf.get(path)),
        ]
    assert [reply.status_code for reply in replies] == [400, 500]
    assert all(has_brand(reply.content.decode()) for reply in replies)
    # A process that has read nothing yet.
    places.forget_place_of_state()
    with django_assert_num_queries(0):
        reply = handlers.bad_request(rf.get(path), ValueError())
    assert "Groundswell" in reply.content.decode()


def test_the_pages_of_a_survey_lead_to_no_other_task(browser, maya):
    browser.log_in(maya)
    footer = browser.get("/take/").content.decode().partition("<footer")[2]
    assert "/accessibility/?" in footer
    assert "/console/" not in footer and "/schools/" not in footer


@pytest.mark.parametrize("path", ["/", "/take/"])
def test_a_503_shows_the_state_without_the_database(rf, ohio, monkeypatch, path):
    Client().get("/")

    def away():
        raise OperationalError

    monkeypatch.setattr(PlaceSettings.objects, "filter", away)
    # Read too long ago for another page.
    monkeypatch.setattr(places.time, "monotonic", lambda: 10.0**9)
    reply = unavailable.unavailable_response(rf.get(path), "database")
    assert reply.status_code == 503
    assert has_brand(reply.content.decode())


def test_a_503_of_a_new_process_has_no_brand(rf, ohio):
    reply = unavailable.unavailable_response(rf.get("/"), "database")
    assert "Groundswell" in reply.content.decode()


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "Privacy"), ("es", "Privacidad"), ("ar", "الخصوصية")],
)
def test_a_page_says_who_asks_and_what_happens_to_answers(ohio, language, words):
    reply = Client().get(f"/about/?language={language}")
    html = reply.content.decode()
    assert f'<h2 id="privacy">{words}</h2>' in html
    assert "Ohio" in html.partition("<main")[2].partition("</main>")[0]
    # The same for everybody.
    assert not reply.cookies and "s-maxage" in reply["Cache-Control"]


def test_a_page_names_a_contact_only_where_there_is_one(ohio):
    assert "tell the contact below or the school" in Client().get("/about/").text
    ohio.delete()
    places.forget_place_of_state()
    html = Client().get("/about/").text
    assert "contact below" not in html and "please tell the school" in html


def test_a_page_links_to_the_source_of_a_changed_installation(ohio, settings):
    source = "https://code.example/ohio"
    assert "source code" not in Client().get("/about/").text
    settings.SOURCE_URL = source
    html = Client().get("/about/").text
    assert "Its source code:" in html and f'href="{source}"' in html
    # Which version it is, the public need not know.
    assert settings.VERSION not in html


def test_the_start_page_leads_people_without_a_code_on():
    main = Client().get("/?language=es").content.decode().partition("<main")[2]
    main = main.partition("</main>")[0]
    assert 'href="/schools/?language=es"' in main
    assert 'href="/about/?language=es"' in main


@pytest.mark.parametrize("path", PUBLIC[:4])
def test_languages_have_their_own_names_in_one_order(path):
    html = Client().get(path).content.decode()
    menu = html.partition('<nav class="languages"')[2].partition("</nav>")[0]
    places_of = [menu.index(name) for name in ("English", "Español", "العربية")]
    assert places_of == sorted(places_of)
