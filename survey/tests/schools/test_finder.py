"""The public pages of schools, without cookies in or out."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone

from accounts.models import School, SchoolListing
from accounts.school_directory import refresh_words
from survey.fieldwork.administrations import open_administration
from survey.fieldwork.open_codes.codes import code_of, publish_open_code
from survey.models import Administration, OpenCode, Role
from survey.people.access_codes import format_code
from survey.taking.messages import MESSAGES
from survey.tests.open_codes.cast import open_code, open_to_parents

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(lincoln, roosevelt):
    SchoolListing.objects.filter(pk=lincoln.pk).update(
        street="12 Secret St",
        city="Springfield",
        state="IL",
        latitude=39.8,
        longitude=-89.65,
    )
    SchoolListing.objects.filter(pk=roosevelt.pk).update(
        city="Peoria", state="IL", latitude=40.69, longitude=-89.59
    )
    refresh_words()


def get(path, query=None, **headers):
    """Request a page with the cookies of a staff and a respondent's session."""
    client = Client()
    client.cookies["sessionid"] = "a" * 32
    client.cookies["csrftoken"] = "b" * 32
    response = client.get(path, query, headers=headers)
    assert not response.cookies
    assert "Cookie" not in response.headers.get("Vary", "")
    return response


def names(response):
    return re.findall(r'<a href="/schools/\d+/[^"]*"><bdi>([^<]*)', response.text)


def test_a_visitor_finds_a_school_and_its_open_survey(place, lincoln, administration):
    page = get("/schools/", {"q": "springf"})
    assert names(page) == ["Lincoln"]
    assert "Springfield, IL" in page.text

    school = get(f"/schools/{lincoln.pk}/")
    assert "Our school" in school.text and "For students" in school.text
    assert 'href="/"' in school.text
    # Nothing of the survey but its title, and no street.
    assert administration.name not in school.text and "Secret" not in school.text


def test_nearby_schools_are_listed_with_their_distance(place):
    page = get("/schools/", {"lat": "39.80", "lon": "-89.65"})
    assert names(page) == ["Lincoln", "Roosevelt"]
    assert "Less than 1 mi" in page.text and "62 mi" in page.text


def test_a_school_without_open_surveys_shows_only_name_and_place(
    place, lincoln, administration
):
    moment = timezone.now() - timedelta(days=2)
    Administration.objects.update(opens_at=moment, closes_at=moment + timedelta(days=1))
    page = get(f"/schools/{lincoln.pk}/")
    assert f'href="/results/schools/{lincoln.pk}/"' in page.text
    assert "Lincoln" in page.text and "Springfield, IL" in page.text
    assert "Our school" not in page.text and "access code" not in page.text


def test_a_published_code_is_shown_until_it_is_unpublished_or_ends(place, lincoln):
    code = open_code(open_to_parents(), lincoln)
    letters = format_code(code_of(code))
    before = get(f"/schools/{lincoln.pk}/?language=es").text
    assert letters not in before and letters.replace("-", "") not in before
    assert 'href="/open/?language=es"' in before and "Para madres" in before

    publish_open_code(code=code, by="a test")
    page = get(f"/schools/{lincoln.pk}/?language=es").text
    assert f'href="/open/?language=es#{letters}"' in page
    now = timezone.now()
    for window in (
        {"opens_at": now + timedelta(hours=1)},
        {"closes_at": now - timedelta(hours=1)},
    ):
        OpenCode.objects.update(**{"opens_at": None, "closes_at": None} | window)
        assert letters not in get(f"/schools/{lincoln.pk}/").text
    OpenCode.objects.update(opens_at=None, closes_at=None)
    assert letters in get(f"/schools/{lincoln.pk}/").text
    publish_open_code(code=code, by="a test", published=False)
    assert letters not in get(f"/schools/{lincoln.pk}/").text


def test_the_published_code_in_the_readers_language_is_preferred(place, lincoln):
    parents = open_to_parents()
    letters = {}
    for language in ("es", "", "en"):
        code = open_code(parents, lincoln, language=language)
        publish_open_code(code=code, by="a test")
        letters[language] = format_code(code_of(code))

    def shown(language):
        text = get(f"/schools/{lincoln.pk}/?language={language}").text
        return [each for each, code in letters.items() if code in text]

    assert [shown(each) for each in ("es", "en", "ar")] == [["es"], ["en"], [""]]


def test_published_codes_of_other_schools_are_not_shown(place, lincoln, roosevelt):
    code = open_code(open_to_parents(), roosevelt)
    publish_open_code(code=code, by="a test")
    letters = format_code(code_of(code))
    assert letters in get(f"/schools/{roosevelt.pk}/").text
    assert letters not in get(f"/schools/{lincoln.pk}/").text


def test_a_schools_contact_is_shown_with_its_open_surveys(
    place, lincoln, administration
):
    SchoolListing.objects.filter(pk=lincoln.pk).update(
        contact_name="School office",
        contact_phone="217 555 0134",
        contact_email="office@lincoln.example",
    )
    page = get(f"/schools/{lincoln.pk}/").text
    assert "School office" in page and 'href="tel:2175550134"' in page
    assert 'href="mailto:office@lincoln.example"' in page
    Administration.objects.update(closes_at=timezone.now())
    assert "School office" not in get(f"/schools/{lincoln.pk}/").text


def test_a_survey_is_shown_where_it_is_offered(
    place, publish, lincoln, roosevelt, administration
):
    now = timezone.now()
    of_district = open_administration(
        name="teachers",
        published=publish(name="other"),
        role=Role.TEACHER,
        opens_at=now - timedelta(days=1),
        closes_at=now + timedelta(days=1),
        district=lincoln.district,
    )

    def audiences(school):
        return re.findall(r"For (\w+)", get(f"/schools/{school.pk}/").text)

    assert audiences(lincoln) == ["teachers", "students"]
    assert audiences(roosevelt) == ["students"]
    another = School.objects.create(district=lincoln.district, code="x", name="X")
    of_district.schools.add(another)
    assert audiences(lincoln) == ["students"]
    assert audiences(another) == ["teachers", "students"]
    of_district.schools.clear()
    of_district.districts.add(roosevelt.district)
    assert audiences(roosevelt) == ["teachers", "students"]


def test_other_spellings_of_an_address_lead_to_one(place):
    cases = [
        ("q=+LINCOLN++High+", "q=lincoln+high"),
        ("q=lincoln%20high", "q=lincoln+high"),
        ("lon=-89.6512345&lat=39.8099999&x=1", "lat=39.80&lon=-89.65"),
        ("q=Pe%C3%91a&language=es&utm=9", "language=es&q=pe%C3%B1a"),
        ("language=xx", ""),
        ("q=", ""),
        ("q=" + "a" * 300, "q=" + "a" * 100),
        ("q=a%00b%FF", "q=a+b%EF%BF%BD"),
    ]
    for query, canonical in cases:
        response = get("/schools/?" + query)
        assert response.status_code == 302, query
        address = f"/schools/?{canonical}" if canonical else "/schools/"
        assert response.headers["Location"] == address
        assert get(address).status_code == 200


def test_what_is_no_place_is_refused_with_a_message(place):
    cases = [
        {"lat": "north", "lon": "1"},
        {"lat": "NaN", "lon": "NaN"},
        {"lat": "inf", "lon": "1"},
        {"lat": "1e1", "lon": "1"},
        {"lat": "91", "lon": "0"},
        {"lat": "0", "lon": "180.01"},
        {"lat": "1" * 40, "lon": "2" * 40},
        {"lat": "10", "lon": "100000"},
        {"lat": "1", "lon": ""},
        {"lon": "1"},
        {"lat": "١", "lon": "١"},
        {"lat": "1\x00", "lon": "1"},
        {"lat": "1'; --", "lon": "1"},
    ]
    message = MESSAGES["en"]["schools_bad_place"].replace("'", "&#x27;")
    for query in cases:
        response = Client().get("/schools/", query, follow=True)
        assert response.status_code == 400, query
        assert message in response.text
        assert response.headers["Cache-Control"] == "no-cache"


def test_digits_beyond_the_second_are_cut(place):
    query = {"lat": "39." + "8" * 40, "lon": "-89.65"}
    response = Client().get("/schools/", query, follow=True)
    assert (response.status_code, names(response)) == (200, ["Lincoln", "Roosevelt"])


def test_hostile_queries_are_answered_and_never_an_error(place):
    cases = [
        "lat=NaN&lon=1",
        "lat=1e400&lon=1",
        "lat=1&lon=-1e400",
        f"lat={'1' * 40}&lon={'2' * 40}",
        "lat=%00&lon=%00",
        "lat=1&lat=2&lon=3&lon=x",
        f"q={'x' * 10_000}",
        f"q={'x%20' * 3000}",
        "q=%00%01%1b%7f%c2%85",
        "q=%ff%fe%c0%80",
        "q=%ed%a0%80",
        "q=%F0%9F%8F%AB",
        "q='%3A*%26%7C!()%5C",
        f"district={'9' * 400}",
        "language=%00",
        "%00=%00",
    ]
    for query in cases:
        response = Client().get(f"/schools/?{query}", follow=True)
        assert response.status_code in (200, 400, 404), query[:50]
        if response.status_code != 200:
            assert response.headers["Cache-Control"] == "no-cache"


def test_ten_thousand_parameters_are_refused(place):
    query = "&".join(f"p{n}=1" for n in range(10_000))
    assert Client().get(f"/schools/?{query}").status_code == 400


def test_an_unknown_school_is_not_found(place):
    for number in ("0", "99999999", "9" * 19, "9" * 40):
        response = get(f"/schools/{number}/")
        assert response.status_code == 404
        assert "We don&#x27;t know this school" in response.text


def test_pages_are_kept_by_nginx_only_if_they_are_found(place, lincoln):
    for path in ("/schools/", "/schools/?q=lincoln", f"/schools/{lincoln.pk}/"):
        response = get(path)
        cached = response.headers["Cache-Control"]
        assert cached == "s-maxage=20, max-age=0, stale-while-revalidate=10"
    assert get("/schools/0/").headers["Cache-Control"] == "no-cache"
    assert Client().post("/schools/").status_code == 405


def test_a_page_speaks_the_chosen_language_or_the_browsers(
    place, lincoln, administration
):
    spanish = get(f"/schools/{lincoln.pk}/?language=es")
    assert "Para estudiantes" in spanish.text and "Nuestra escuela" in spanish.text
    assert "Accept-Language" not in spanish.headers.get("Vary", "")
    arabic = get("/schools/", accept_language="ar-EG,en")
    assert 'dir="rtl"' in arabic.text
    assert "Accept-Language" in arabic.headers["Vary"]
    assert "/schools/?language=es" in arabic.text


def test_a_misspelled_town_is_corrected(place):
    page = get("/schools/", {"q": "springfeild"})
    assert names(page) == ["Lincoln"]
    assert "These schools match “springfield”" in page.text


def test_only_what_is_known_of_schools_can_be_searched_for(lincoln):
    page = get("/schools/", {"q": "springfield"}).text
    assert "Name of the school" in page
    for promise in ("town", "postal code", "near-me"):
        assert promise not in page


def test_towns_are_asked_for_where_they_are_known(place):
    page = get("/schools/", {"q": "nowhere"}).text
    assert "Name, town or postal code" in page
    assert "search for the town alone" in page
    assert 'id="near-me"' in page


def test_a_text_is_shown_as_text(place):
    page = get("/schools/", {"q": "<script>{text}"})
    assert "<script>{" not in page.text and "&lt;script&gt;{text}" in page.text


def test_a_page_costs_few_statements(
    place, lincoln, administration, django_assert_num_queries
):
    # Reads what the state shows.
    get("/schools/")
    get(f"/schools/{lincoln.pk}/")
    with django_assert_num_queries(4):
        get(f"/schools/{lincoln.pk}/")
    with django_assert_num_queries(3):
        get("/schools/?q=lincoln")
    # The district and its list are cached.
    get("/schools/?lat=39.80&lon=-89.65")
    with django_assert_num_queries(1 if on_postgresql() else 5):
        get("/schools/?lat=39.80&lon=-89.65")


def on_postgresql():
    return "sqlite" not in django_settings.DATABASES["default"]["ENGINE"]
