"""Lists of a district's schools are cached, and refreshed by a worker."""

from __future__ import annotations

import pytest
from django.core.cache import cache, caches
from django.test import Client
from django.utils import timezone

from accounts.models import District, School, SchoolListing
from accounts.school_directory import refresh_words
from survey.people.schools import lists
from survey.people.schools.lists import district_at, refresh_expired, schools_of
from survey.tasks import refresh_lists

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def empty_caches():
    cache.clear()
    caches["lists"].clear()
    yield
    cache.clear()
    caches["lists"].clear()


@pytest.fixture
def clock(monkeypatch):
    """Return a function that lets time pass for the lists."""
    now = [timezone.now().timestamp()]
    monkeypatch.setattr(lists.time, "time", lambda: now[0])

    def let_pass(seconds):
        now[0] += seconds

    return let_pass


def names(district):
    return [name for _, name, _ in schools_of(district.pk).schools]


def add(district, name):
    return School.objects.create(district=district, code=name, name=name)


def test_an_expired_list_is_served_at_once_and_refreshed_by_the_worker(
    lincoln, clock, django_assert_num_queries
):
    district = lincoln.district
    assert names(district) == ["Lincoln"]
    add(district, "Adams")
    with django_assert_num_queries(0):
        assert names(district) == ["Lincoln"]
    # Fresh lists are not refreshed.
    assert refresh_expired() == 0

    clock(lists.FRESH)
    with django_assert_num_queries(0):
        assert names(district) == ["Lincoln"]
    refresh_lists()
    with django_assert_num_queries(0):
        assert names(district) == ["Adams", "Lincoln"]


def test_many_requests_for_an_expired_list_are_one_refresh(
    lincoln, clock, django_assert_num_queries
):
    schools_of(lincoln.district_id)
    clock(lists.FRESH)
    for _ in range(20):
        schools_of(lincoln.district_id)
    assert len(caches["lists"].get_many(lists.SLOTS)) == 1
    with django_assert_num_queries(3):
        assert refresh_expired() == 1
    with django_assert_num_queries(0):
        assert refresh_expired() == 0


def test_without_a_worker_a_request_reads_the_list_when_its_life_ends(lincoln, clock):
    district = lincoln.district
    assert names(district) == ["Lincoln"]
    add(district, "Adams")
    clock(lists.LIFE - 1)
    assert names(district) == ["Lincoln"]
    clock(1)
    assert names(district) == ["Adams", "Lincoln"]


def test_lists_are_read_from_the_database_while_the_cache_is_down(lincoln, settings):
    settings.CACHES = {
        name: {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}
        for name in settings.CACHES
    }
    assert names(lincoln.district) == ["Lincoln"]
    add(lincoln.district, "Adams")
    assert names(lincoln.district) == ["Adams", "Lincoln"]
    assert refresh_expired() == 0
    page = Client().get(f"/schools/?district={lincoln.district_id}")
    assert page.status_code == 200


def test_a_pool_with_another_secret_key_reads_what_the_worker_wrote(
    lincoln, settings, django_assert_num_queries
):
    schools_of(lincoln.district_id)
    settings.SECRET_KEY = "of the respondents' pool" * 3
    with django_assert_num_queries(0):
        assert names(lincoln.district) == ["Lincoln"]


def test_an_unknown_district_is_not_found_and_not_cached(db, django_assert_num_queries):
    for _ in range(2):
        with django_assert_num_queries(1):
            assert schools_of(10**17) is None
    response = Client().get("/schools/?district=99999999")
    assert response.status_code == 404
    assert response.headers["Cache-Control"] == "no-cache"


def test_a_long_list_is_cut_and_says_so(lincoln, monkeypatch):
    monkeypatch.setattr(lists, "MOST_LISTED", 2)
    for name in ("Adams", "Carver"):
        add(lincoln.district, name)
    listed = schools_of(lincoln.district_id)
    assert [name for _, name, _ in listed.schools] == ["Adams", "Carver"]
    assert listed.has_more


def test_the_district_of_a_place_is_that_of_the_nearest_school_for_ten_minutes(
    lincoln, roosevelt, django_assert_num_queries
):
    assert district_at(39.8, -89.65) is None
    cache.clear()
    for school, latitude in ((lincoln, 39.8), (roosevelt, 40.7)):
        SchoolListing.objects.filter(pk=school.pk).update(
            latitude=latitude, longitude=-89.65
        )
    assert district_at(39.9, -89.6) == lincoln.district_id
    assert district_at(40.6, -89.6) == roosevelt.district_id
    with django_assert_num_queries(0):
        assert district_at(39.9, -89.6) == lincoln.district_id


def test_a_visitor_sees_the_schools_of_the_district_nearby(lincoln, roosevelt):
    SchoolListing.objects.filter(pk=lincoln.pk).update(latitude=39.8, longitude=-89.65)
    add(lincoln.district, "Adams")
    refresh_words()
    District.objects.filter(pk=lincoln.district_id).update(name="River & Hill")
    page = Client().get("/schools/?language=es&lat=39.80&lon=-89.65")
    assert "Todas las escuelas de este distrito" in page.text
    address = f"/schools/?language=es&district={lincoln.district_id}"
    assert address.replace("&", "&amp;") in page.text
    listed = Client().get(address)
    assert "Escuelas de River &amp; Hill" in listed.text
    assert "Adams" in listed.text and "Roosevelt" not in listed.text
    cached = listed.headers["Cache-Control"]
    assert cached == "s-maxage=6, max-age=0, stale-while-revalidate=4"


@pytest.mark.parametrize(
    ("query", "canonical"),
    [
        ("district=007", "district=7"),
        ("district=7&q=x", "q=x"),
        ("district=7&lat=1&lon=1", "lat=1&lon=1"),
        ("district=x", ""),
        ("district=-1", ""),
        ("district=" + "9" * 40, ""),
        ("district=1%00", ""),
    ],
)
def test_a_district_has_one_address(db, query, canonical):
    response = Client().get(f"/schools/?{query}")
    assert response.status_code == 302
    path = f"/schools/?{canonical}" if canonical else "/schools/"
    assert response.headers["Location"] == path
