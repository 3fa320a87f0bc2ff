"""Find schools nearby and by name; the same on PostgreSQL and on SQLite."""

from __future__ import annotations

import math
import random

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from accounts import school_directory
from accounts.models import District, School, SchoolListing, SchoolWord
from accounts.school_directory import (
    find_schools,
    is_one_error_away,
    kilometres_between,
    nearest_schools,
    refresh_words,
    search_text,
)
from accounts.tasks import refresh_school_words

pytestmark = pytest.mark.django_db


def list_schools(*rows, **columns):
    """Create schools, by name or (name, latitude, longitude)."""
    district, _ = District.objects.get_or_create(code="d", name="District")
    for row in rows:
        name, *place = (row,) if isinstance(row, str) else row
        school = School.objects.create(
            district=district, code=f"s{School.objects.count()}", name=name
        )
        where = dict(zip(("latitude", "longitude"), place, strict=False))
        SchoolListing.objects.filter(pk=school.pk).update(**where, **columns)


def names(result):
    return [listing.name for listing in result.schools]


def near(latitude, longitude, limit=20):
    return [
        school.listing.name for school in nearest_schools(latitude, longitude, limit)
    ]


# Kept in step ---------------------------------------------------------------------


@pytest.mark.sqlite
def test_a_school_has_a_listing_as_long_as_it_exists(staff):
    listing = SchoolListing.objects.get(school=staff.lincoln)
    assert (listing.name, listing.district) == ("Lincoln", staff.riverside)
    assert listing.search == " lincoln"

    School.objects.filter(pk=staff.lincoln.pk).update(name="César Chávez")
    listing.refresh_from_db()
    assert (listing.name, listing.search) == ("César Chávez", " cesar chavez")

    School.objects.filter(pk=staff.washington.pk).update(district=staff.lakeside)
    moved = SchoolListing.objects.get(school=staff.washington)
    assert moved.district == staff.lakeside

    staff.washington.delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM accounts_membership")
        cursor.execute("DELETE FROM accounts_school WHERE name = 'Roosevelt'")
    assert [listing.name for listing in SchoolListing.objects.all()] == ["César Chávez"]


@pytest.mark.sqlite
def test_schools_created_in_bulk_are_listed_with_their_address(staff):
    School.objects.bulk_create(
        [School(district=staff.riverside, code="new", name="New")]
    )
    listing = SchoolListing.objects.get(name="New")
    listing.city, listing.state, listing.postal_code = "Peñaford", "NM", "87001"
    listing.save()
    listing.refresh_from_db()
    assert listing.search == " new penaford nm 87001"


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "text",
    [
        "  Señora Ødegård’s  École—Zürich (North), No. 5/6 ",
        "O'Brien & Sons _High_ 100% \\ a\tb\u00a0c",
        "ẞtraße ÆSOP ŒUVRE Þing e\u0301 \U0001f3eb 学校",
        "".join(map(chr, range(0xC0, 0x250))),
        "".join(map(chr, range(0x1E00, 0x1F00))),
        "".join(map(chr, range(0x20, 0xC0))),
    ],
)
def test_the_database_writes_the_text_that_a_query_is_compared_with(text):
    for start in range(0, len(text), 190):
        part = f"A{text[start : start + 190]}z"
        list_schools(part)
        [listing] = SchoolListing.objects.filter(name=part)
        assert listing.search == search_text(part).replace("\u00df", "ss")


@pytest.mark.parametrize(
    ("latitude", "longitude"), [(91, 0), (0, 181), (None, 1), (1, None)]
)
def test_a_listing_is_nowhere_or_on_the_earth(staff, latitude, longitude):
    with pytest.raises(IntegrityError), transaction.atomic():
        SchoolListing.objects.update(latitude=latitude, longitude=longitude)
    listing = staff.lincoln.listing
    listing.latitude, listing.longitude = latitude, longitude
    with pytest.raises(ValidationError):
        listing.validate_constraints()


# The nearest ------------------------------------------------------------------


@pytest.mark.sqlite
def test_the_nearest_schools_come_first():
    list_schools(("Here", 41.88, -87.63), ("Milwaukee", 43.04, -87.91))
    list_schools(("Evanston", 42.05, -87.69), "Nowhere")
    nearest = nearest_schools(41.88, -87.63)
    assert [school.listing.name for school in nearest] == [
        "Here",
        "Evanston",
        "Milwaukee",
    ]
    assert [round(school.kilometres) for school in nearest] == [0, 20, 131]
    assert near(41.88, -87.63, limit=2) == ["Here", "Evanston"]


@pytest.mark.sqlite
def test_a_degree_east_is_shorter_than_one_north():
    list_schools(("North", 61.0, 0.0), ("East", 60.0, 1.5))
    assert near(60, 0) == ["East", "North"]


@pytest.mark.sqlite
def test_distances_cross_the_date_line_and_the_poles():
    list_schools(("Fiji", -17.0, 179.9), ("Samoa", -17.0, -172.0))
    list_schools(("Over the pole", 89.5, 180.0), ("This side", 88.0, 0.0))
    assert near(-17, -179.9)[:2] == ["Fiji", "Samoa"]
    assert near(89.5, 0)[:2] == ["Over the pole", "This side"]


@pytest.mark.sqlite
def test_the_nearest_are_those_of_a_search_through_all():
    chance = random.Random(4)
    list_schools(
        *(
            (f"S{n}", chance.gauss(40, 3), chance.gauss(-100, 3) % 360 - 180)
            for n in range(300)
        )
    )
    list_schools(("South pole", -90, 12), ("North pole", 90, -180))
    everywhere = list(SchoolListing.objects.all())
    points = [(90, 0), (-90, 180), (0, 180), (0, -180), (40.5, 80.5), (39, 79)]
    points += [
        (math.degrees(math.asin(chance.uniform(-1, 1))), chance.uniform(-180, 180))
        for _ in range(20)
    ]
    for latitude, longitude in points:
        truth = sorted(
            everywhere, key=lambda each: kilometres_between(latitude, longitude, each)
        )
        expected = [each.name for each in truth[:20]]
        assert near(latitude, longitude) == expected, (latitude, longitude)


@pytest.mark.sqlite
def test_no_schools_are_near_where_none_has_a_place():
    list_schools("Nowhere")
    assert nearest_schools(1, 1) == []


# By words ---------------------------------------------------------------------


@pytest.mark.sqlite
def test_schools_are_found_by_the_beginnings_of_words_in_any_order():
    list_schools("Lincoln High School", city="Springfield", postal_code="62701")
    list_schools("Washington High School", city="Lincoln", postal_code="68501")
    list_schools("Carver Academy", city="Dayton", postal_code="45401")
    both = ["Lincoln High School", "Washington High School"]
    assert names(find_schools("linc")) == both
    assert names(find_schools("school high linc")) == both
    assert names(find_schools("SPRINGFIELD lincoln")) == both[:1]
    assert names(find_schools("45401")) == ["Carver Academy"]
    assert names(find_schools("coln")) == []


@pytest.mark.sqlite
def test_accents_case_and_punctuation_do_not_matter():
    list_schools("César Chávez Elementary", "O'Brien – St. Mary's")
    for text in ("cesar chavez", "CÉSAR CHÁVEZ", "cesar chavez", "chávez"):
        assert names(find_schools(text)) == ["César Chávez Elementary"]
    for text in ("obrien", "O’Brien", "st marys", "(mary's)"):
        assert names(find_schools(text)) == ["O'Brien – St. Mary's"]


@pytest.mark.sqlite
def test_names_that_begin_with_the_text_come_first_and_more_are_announced():
    list_schools("Zeta Oak", "Oak Hill", "Alpha Oak", "Oak Grove")
    result = find_schools("oak")
    assert names(result) == ["Oak Grove", "Oak Hill", "Alpha Oak", "Zeta Oak"]
    assert not result.more
    some = find_schools("oak", limit=3)
    assert (len(some.schools), some.more) == (3, True)


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "typed", ["linclon", "lincon", "lincooln", "linvoln", "mincoln", "licnoln high"]
)
def test_one_typing_error_is_corrected(typed):
    list_schools("Lincoln High School", "Carver Academy")
    refresh_words()
    result = find_schools(typed)
    assert names(result) == ["Lincoln High School"]
    assert result.corrected.startswith("lincoln")
    assert find_schools("carver").corrected == ""


@pytest.mark.parametrize("typed", ["linkeln", "lin", "oaj", "zzzzzzzz", "x" * 300])
def test_two_errors_and_short_words_are_not_corrected(typed):
    list_schools("Lancaster", "Lincoln", "Oak")
    School.objects.filter(name="Lincoln").delete()
    refresh_words()
    assert names(find_schools(typed)) == []


@pytest.mark.sqlite
def test_a_school_is_found_before_the_words_were_refreshed():
    list_schools("Lincoln High School")
    refresh_words()
    list_schools("Carver Academy")
    for text in ("carver", "academy carver", "acad"):
        assert names(find_schools(text)) == ["Carver Academy"]


def test_the_more_frequent_word_is_suggested():
    list_schools("Marks", "Parks One", "Parks Two")
    refresh_words()
    assert find_schools("larks").corrected == "parks"


@pytest.mark.sqlite
def test_frequent_words_are_found_like_rare_ones(monkeypatch):
    monkeypatch.setattr(school_directory, "FREQUENT", 2)
    list_schools("Lincoln High School", "Carver High School", "Adams Middle School")
    refresh_words()
    assert names(find_schools("school high")) == [
        "Carver High School",
        "Lincoln High School",
    ]
    assert names(find_schools("school lincoln")) == ["Lincoln High School"]
    assert names(find_schools("school")) == [
        "Adams Middle School",
        "Carver High School",
        "Lincoln High School",
    ]


@pytest.mark.parametrize("text", ["", "   ", "%", "_", "\\", "'", "–", "* & |", "\x1f"])
def test_a_text_without_words_finds_nothing(text):
    list_schools("Lincoln")
    assert names(find_schools(text)) == []


def test_any_other_text_is_only_a_text():
    list_schools("Lincoln")
    for text in ("lincoln' OR 1=1 --", "lin%oln", "l_ncoln", "%s", "a " * 500):
        assert names(find_schools(text)) == []


@pytest.mark.sqlite
def test_words_are_refreshed_with_the_schools():
    list_schools("Lincoln High", "Lincoln Middle")
    refresh_school_words()
    counts = dict(SchoolWord.objects.values_list("word", "schools"))
    assert counts == {"lincoln": 2, "high": 1, "middle": 1}
    School.objects.filter(name="Lincoln High").delete()
    assert refresh_words() == 2
    assert refresh_words() == 0
    counts = dict(SchoolWord.objects.values_list("word", "schools"))
    assert counts == {"lincoln": 1, "middle": 1}


def test_one_error_is_a_wrong_missing_additional_or_exchanged_letter():
    chance = random.Random(1)
    letters = "abc"
    for _ in range(3000):
        typed = "".join(chance.choices(letters, k=chance.randrange(1, 6)))
        target = "".join(chance.choices(letters, k=chance.randrange(1, 6)))
        edits = set()
        for at in range(len(typed) + 1):
            edits |= {typed[:at] + x + typed[at:] for x in letters}
            edits |= {typed[:at] + typed[at + 1 :]}
            edits |= {
                typed[:at] + x + typed[at + 1 :] for x in letters if at < len(typed)
            }
            if at + 1 < len(typed):
                edits.add(typed[:at] + typed[at + 1] + typed[at] + typed[at + 2 :])
        expected = target in edits and target != typed
        assert is_one_error_away(typed, target) == expected, (typed, target)


def test_a_search_reads_one_table(django_assert_num_queries):
    list_schools(("Lincoln", 1.0, 1.0))
    refresh_words()
    for text in ("lincoln", "linc"):
        with django_assert_num_queries(3):
            find_schools(text)
    with django_assert_num_queries(5):
        find_schools("lincolm")
    with django_assert_num_queries(1):
        find_schools("lincoln", limit=0)
    expected = (
        1 if connection.vendor == "postgresql" else 1 + len(school_directory.SQUARES)
    )
    with django_assert_num_queries(expected):
        nearest_schools(1, 1)
