"""The public page with all questions of an administration."""

from __future__ import annotations

import re

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from accounts.models import AuditEntry, PlaceSettings, SchoolListing
from accounts.tests.logging_in import log_in
from survey.models import Administration
from survey.tests.conftest import PAGES, THREE_LANGUAGES, open_now, publish_items

pytestmark = pytest.mark.django_db


@pytest.fixture
def public(db) -> PlaceSettings:
    return PlaceSettings.objects.create(public_questions=True)


@pytest.fixture
def administration(db) -> Administration:
    return open_now(publish_items(languages=THREE_LANGUAGES))


def ask(path: str, query: dict[str, str] | None = None, **headers: str):
    """Request a page with the cookies of a staff and a respondent's session."""
    client = Client()
    client.cookies["sessionid"] = "a" * 32
    client.cookies["csrftoken"] = "b" * 32
    response = client.get(path, query, headers=headers)
    assert not response.cookies
    assert "Cookie" not in response.headers.get("Vary", "")
    return response


def without_time(response) -> str:
    return re.sub(r'data-now="[^"]*"', "", response.text)


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.text))


@pytest.mark.sqlite
def test_a_family_reads_all_questions_answers_and_rules(public, administration):
    page = ask("/questions/students-2027/", {"language": "en"})
    assert page.status_code == 200
    text = text_of(page)
    for shown in (
        "Our school",
        "Page 1: Page 1",
        "1. About safe",
        "disagree unsure agree",
        "Shown only if the answer to question 2 includes “art”.",
        "Page 3: Page 3",
    ):
        assert shown in text
    assert not re.search(r"<(input|select|textarea|script|form)\b", page.text)
    assert '<meta name="robots" content="noindex">' in page.text
    assert page["X-Robots-Tag"] == "noindex"
    assert page["Cache-Control"].startswith("s-maxage=")


def test_each_language_has_its_words_and_direction(public, administration):
    page = ask("/questions/students-2027/", {"language": "es"})
    assert "Nuestra escuela" in page.text and "De safe" in page.text
    assert "Se muestra solo si" in page.text
    arabic = ask("/questions/students-2027/", {"language": "ar"}).text
    assert '<html lang="ar" dir="rtl"' in arabic
    for code in ("en", "es", "ar"):
        assert f'href="?language={code}"' in arabic
    by_browser = ask("/questions/students-2027/", Accept_Language="es-MX,en;q=0.5")
    assert "De safe" in by_browser.text
    assert "Accept-Language" in by_browser["Vary"]


def test_it_is_the_version_that_people_get_and_never_a_draft(public, administration):
    pages = [dict(page) for page in PAGES]
    pages[0]["drafted"] = {"kind": "text"}
    newer = publish_items(pages, name="newer")
    assert "drafted" not in ask("/questions/students-2027/").text
    # A correction that the owner has taken over shows at once.
    Administration.objects.update(published=newer)
    assert "drafted" in ask("/questions/students-2027/").text


@pytest.mark.sqlite
def test_what_is_not_public_looks_like_what_is_not_there(
    administration, django_assert_num_queries
):
    missing = ask("/questions/nothing/", {"language": "en"})
    assert missing.status_code == 404
    with django_assert_num_queries(1):
        assert ask("/questions/students-2027/", {"language": "en"}).status_code == 404
    PlaceSettings.objects.create(public_questions=True)
    Administration.objects.update(public_questions=False)
    with django_assert_num_queries(1):
        hidden = ask("/questions/students-2027/", {"language": "en"})
    with django_assert_num_queries(1):
        missing = ask("/questions/nothing/", {"language": "en"})
    assert hidden.status_code == 404
    assert without_time(hidden) == without_time(missing)
    assert dict(hidden.headers) == dict(missing.headers)
    assert "Our school" not in hidden.text
    # There was something to hide.
    Administration.objects.update(public_questions=True)
    with django_assert_num_queries(2):
        assert ask("/questions/students-2027/").status_code == 200


def test_the_pages_of_schools_lead_to_it(public, administration, lincoln):
    SchoolListing.objects.filter(pk=lincoln.pk).update(city="Springfield")
    page = ask(f"/schools/{lincoln.pk}/", {"language": "es"})
    assert 'href="/questions/students-2027/?language=es"' in page.text
    Administration.objects.update(public_questions=False)
    assert "/questions/" not in ask(f"/schools/{lincoln.pk}/").text


def test_staff_copy_its_address(client, staff, administration, settings):
    address = f"/console/administrations/{administration.pk}/questionnaire/"
    shown = f'value="{settings.PUBLIC_ADDRESS}/questions/students-2027/"'
    log_in(client, staff.chen)
    assert shown not in client.get(address).text
    PlaceSettings.objects.create(public_questions=True)
    assert shown in client.get(address).text


def test_only_the_state_makes_questions_public(staff):
    address = "/console/settings/state/questions/"
    for user in (staff.dana, staff.chen, staff.analyst):
        client = log_in(Client(), user)
        assert client.post(address, {"public_questions": "on"}).status_code == 404
    assert not PlaceSettings.objects.filter(public_questions=True).exists()
    client = log_in(Client(), staff.state)
    client.post(address, {"public_questions": "on"})
    assert PlaceSettings.objects.filter(public_questions=True).exists()
    assert (
        "Families can read the questions" in client.get("/console/settings/state/").text
    )
    assert AuditEntry.objects.filter(
        action="change whether questions are public"
    ).exists()


def test_a_district_hides_the_questions_of_its_own_rounds(
    public, staff, administration, django_assert_num_queries
):
    address, lincoln = "/questions/students-2027/", staff.lincoln
    Administration.objects.update(district=lincoln.district)
    SchoolListing.objects.filter(pk=lincoln.pk).update(city="Springfield")
    dana = log_in(Client(), staff.dana)
    sheet = f"/console/administrations/{administration.pk}/questionnaire/"

    def shown() -> list[bool]:
        school = ask(f"/schools/{lincoln.pk}/", {"language": "en"})
        return [
            ask(address).status_code == 200,
            address in school.text,
            address in dana.get(sheet).text,
        ]

    # Without the switch, everybody reads them.
    assert shown() == [True, True, True]
    settings = f"/console/settings/districts/{lincoln.district_id}/"
    assert dana.post(f"{settings}questions/", {"hides_questions": "on"}).status_code
    assert shown() == [False, False, False]
    with django_assert_num_queries(1):
        assert ask(address).status_code == 404
    text = "The questions of the district’s survey rounds are on no public page."
    assert text in dana.get(settings).text
    entry = AuditEntry.objects.get(action="change whether questions are public")
    assert entry.after == {"hides_questions": True}
    # The state's rounds, and those of other districts, are not its own.
    for owner in (None, staff.lakeside):
        Administration.objects.update(district=owner)
        assert ask(address).status_code == 200
    Administration.objects.update(district=lincoln.district)
    dana.post(f"{settings}questions/", {})
    assert shown() == [True, True, True]


def test_a_district_makes_nothing_public_and_changes_no_other_place(
    staff, administration
):
    lincoln = staff.lincoln
    Administration.objects.update(district=lincoln.district)
    dana = log_in(Client(), staff.dana)
    lakeside = staff.lakeside
    address = f"/console/settings/districts/{lincoln.district_id}/questions/"
    dana.post(address, {"public_questions": "on", "hides_questions": ""})
    assert ask("/questions/students-2027/").status_code == 404
    for place in (f"districts/{lakeside.pk}", f"schools/{lincoln.pk}", "state"):
        address = f"/console/settings/{place}/questions/"
        reply = dana.post(address, {"hides_questions": "on"})
        assert reply.status_code == 404
    assert not PlaceSettings.objects.filter(hides_questions=True).exists()
    for fields in ({}, {"school": lincoln}):
        with transaction.atomic(), pytest.raises(IntegrityError, match="only_district"):
            PlaceSettings.objects.create(hides_questions=True, **fields)
