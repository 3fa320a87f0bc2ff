"""Renaming, closing and reopening schools and districts."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import AuditEntry, School, SchoolListing
from accounts.place_changes import close_place, rename_place, reopen_place
from accounts.school_directory import find_schools, nearest_schools, refresh_words
from accounts.tests.logging_in import log_in
from survey.fieldwork.administrations import schools_offered
from survey.people.rosters.schools import schools_of_districts
from survey.people.schools.lists import _read
from survey.tests.conftest import enrol

pytestmark = pytest.mark.django_db


def address(place, page) -> str:
    kind = place._meta.verbose_name_plural
    return f"/console/settings/{kind}/{place.pk}/{page}/"


def test_a_school_is_renamed_and_keeps_its_code(staff):
    client = log_in(Client(), staff.dana)
    path = address(staff.lincoln, "rename")
    assert client.post(path, {"name": " Lincoln  High "}).status_code == 302
    staff.lincoln.refresh_from_db()
    assert (staff.lincoln.name, staff.lincoln.code) == ("Lincoln High", "lincoln")
    assert SchoolListing.objects.get(school=staff.lincoln).name == "Lincoln High"
    entry = AuditEntry.objects.get(action="rename school")
    assert entry.before == {"name": "Lincoln"}
    assert entry.after == {"name": "Lincoln High"}
    # Rosters with either name find it.
    directory = schools_of_districts([staff.riverside.pk])[staff.riverside.pk]
    for name in ("Lincoln", "Lincoln High"):
        assert directory.find("", name).keys == (staff.lincoln.pk,)
    # Back again, and nothing is left over.
    rename_place(staff.lincoln, name="Lincoln", by=staff.dana)
    rename_place(staff.lincoln, name="Lincoln High", by=staff.dana)
    assert [*staff.lincoln.aliases.values_list("name", flat=True)] == ["Lincoln"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Enter the new name"),
        ("washington", "There is another place named washington"),
        ("x" * 201, "at most 200 characters"),
        ("Bell\x07", "Character 5 is invisible (U+0007)"),
        ("Zero\u200bwidth", "Use a name of at most"),
    ],
)
def test_wrong_names_are_refused(staff, name, reason):
    client = log_in(Client(), staff.dana)
    reply = client.post(address(staff.lincoln, "rename"), {"name": name})
    assert reply.status_code == 200 and reason in reply.content.decode()
    staff.lincoln.refresh_from_db()
    assert staff.lincoln.name == "Lincoln"


@pytest.mark.parametrize(
    ("login", "place", "status"),
    [
        ("dana", "lincoln", 200),
        ("dana", "riverside", 404),
        ("dana", "roosevelt", 404),
        ("chen", "lincoln", 404),
        ("analyst", "lincoln", 404),
        ("state", "riverside", 200),
    ],
)
@pytest.mark.parametrize("page", ["rename", "close"])
def test_who_may_rename_and_close(staff, login, place, status, page):
    client, target = log_in(Client(), getattr(staff, login)), getattr(staff, place)
    assert client.get(address(target, page)).status_code == status
    if status == 404:
        assert client.post(address(target, page), {"name": "Mine"}).status_code == 404
        target.refresh_from_db()
        assert target.closed_at is None and target.name != "Mine"


def found_places(school) -> dict[str, bool]:
    SchoolListing.objects.filter(school=school).update(latitude=41.0, longitude=-83.0)
    near = [found_school.listing.pk for found_school in nearest_schools(41.0, -83.0)]
    by_name = [found_school.pk for found_school in find_schools(school.name).schools]
    listed = [pk for pk, *_ in _read(school.district_id).schools]
    offered = schools_offered(school.district, [], []).values_list("pk", flat=True)
    return {
        "nearest": school.pk in near,
        "by name": school.pk in by_name,
        "listed": school.pk in listed,
        "offered": school.pk in offered,
    }


def test_a_closed_school_is_found_nowhere_until_it_is_reopened(staff):
    refresh_words()
    assert all(found_places(staff.lincoln).values())
    client = log_in(Client(), staff.dana)
    path = address(staff.lincoln, "close")
    assert "Nobody there is invited" in client.get(path).content.decode()
    assert client.post(path).status_code == 302
    assert not any(found_places(staff.lincoln).values())
    assert Client().get(f"/schools/{staff.lincoln.pk}/").status_code == 404
    text = client.get(f"/console/settings/districts/{staff.riverside.pk}/")
    assert '<span class="badge">Closed</span>' in text.content.decode()
    client.post(path, {"reopen": "1"})
    assert all(found_places(staff.lincoln).values())
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert [*actions] == ["close school", "reopen school"]


def test_the_page_says_who_can_still_answer(staff, administration):
    person = enrol(administration, staff.lincoln)
    client = log_in(Client(), staff.dana)
    text = client.get(address(staff.lincoln, "close")).content.decode()
    assert "can go on with their codes until" in text and "1 person" in text
    close_place(staff.lincoln, by=staff.dana)
    person.refresh_from_db()
    assert person.withdrawn_at is None


def test_a_district_takes_its_open_schools_with_it(staff):
    close_place(staff.lincoln, by=staff.state)
    close_place(staff.riverside, by=staff.state)
    assert not School.objects.filter(district=staff.riverside, closed_at=None).exists()
    client = log_in(Client(), staff.state)
    reply = client.post(address(staff.washington, "close"), {"reopen": "1"})
    assert reply.status_code == 409 and "Reopen it first" in reply.content.decode()
    reopen_place(staff.riverside, by=staff.state)
    opened = School.objects.filter(district=staff.riverside, closed_at=None)
    assert [*opened] == [staff.washington]
    assert AuditEntry.objects.filter(action="close district").count() == 1
