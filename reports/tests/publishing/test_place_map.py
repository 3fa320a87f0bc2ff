"""The map of a public page shows places of the directory, and only published ones."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from accounts.models import SchoolListing
from reports.publishing.place_map import map_of
from reports.tests.publishing.test_public_pages import page

pytestmark = pytest.mark.django_db


def located(*schools):
    for number, school in enumerate(schools):
        SchoolListing.objects.update_or_create(
            school=school,
            defaults={
                "district": school.district,
                "name": school.name,
                "latitude": 40 + number,
                "longitude": -80 - number,
            },
        )


def links(response):
    svg = response.text.partition('class="place-map"')[2].partition("</svg>")[0]
    return re.findall(r'href="([^"]+)"', svg)


def test_the_state_shows_its_districts_on_a_map(staff, fall, publish):
    publish(fall)
    assert links(page("published_state", fall.pk)) == []
    located(staff.lincoln, staff.washington, staff.roosevelt)
    assert links(page("published_state", fall.pk)) == [
        reverse("published_district", args=[fall.pk, district.pk])
        for district in (staff.lakeside, staff.riverside)
    ]


def test_a_faint_area_is_where_open_schools_are(staff, fall, publish):
    publish(fall)
    located(staff.lincoln, staff.washington, staff.roosevelt)
    assert page("published_state", fall.pk).text.count("h0") == 3
    SchoolListing.objects.filter(school=staff.washington).update(closed=True)
    assert page("published_state", fall.pk).text.count("h0") == 2


def test_a_district_shows_schools_with_a_report_alone(staff, fall, publish):
    publication = publish(fall)
    located(staff.lincoln, staff.washington)
    # Washington has no report, and one school is no map.
    address = "published_district", fall.pk, staff.riverside.pk
    assert links(page(*address)) == []
    publication.places.filter(place_id=staff.roosevelt.pk).update(
        district_id=staff.riverside.pk
    )
    located(staff.lincoln, staff.washington, staff.roosevelt)
    assert links(page(*address)) == [
        reverse("published_school", args=[fall.pk, school.pk])
        for school in (staff.lincoln, staff.roosevelt)
    ]


def test_north_is_up_and_west_is_left():
    svg = map_of(
        [("North <West>", 1), ("South East", 2)],
        {1: (41.0, -81.0), 2: (40.0, -80.0)},
        lambda key: f"/schools/{key}/",
    )
    assert "<title>North &lt;West&gt;</title>" in svg
    [(x, y), (other_x, other_y)] = [
        (float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', svg)
    ]
    assert x < other_x and y < other_y
    # A degree of longitude is three quarters as long as one of latitude.
    assert (other_x - x) / (other_y - y) == pytest.approx(0.76, abs=0.01)


def test_places_at_one_spot_are_drawn():
    svg = map_of([("A", 1), ("B", 2)], {1: (40.0, -80.0), 2: (40.0, -80.0)}, str)
    assert svg.count('cx="86.0" cy="16.0"') == 2


def test_names_are_beside_dots_where_they_cover_nothing():
    names = ["West", "East", "Behind West", "A name of more letters than a map"]
    places = {0: (40, -80), 1: (40.2, -79), 2: (40.005, -80), 3: (40.3, -79.5)}
    svg = map_of([(name, n) for n, name in enumerate(names)], places, str)
    assert svg.count("<circle") == 4
    assert re.findall(r'text-anchor="(\w+)">([^<]+)<', svg) == [
        *(("start", "West"), ("end", "East"))
    ]
    # A name is no HTML.
    svg = map_of([("<b>", 0), ("x", 1)], places, str)
    assert ">&lt;b&gt;</text>" in svg and "<b>" not in svg
