"""A district with another time zone than the state, and stacks in other zones."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client, RequestFactory
from django.utils import timezone, translation

from accounts import audit, place_settings
from accounts.access import AccessMiddleware
from accounts.models import AuditEntry, District, Membership
from accounts.permissions import Permissions
from accounts.templatetags.console import also_in, clock
from accounts.tests.conftest import member
from accounts.tests.logging_in import log_in
from accounts.time_zones import zone_choices, zone_label, zone_named, zone_of

DENVER = "America/Denver"
# Five hours before Chicago's midnight.
EVENING = datetime(2026, 11, 23, 0, 30, tzinfo=UTC)


@pytest.fixture
def denver(staff):
    District.objects.filter(pk=staff.riverside.pk).update(time_zone=DENVER)
    staff.riverside.refresh_from_db()
    return staff


def page_of(user, address):
    return log_in(Client(), user).get(address, follow=True).content.decode()


def zone_of_user(user):
    return str(Permissions(user).time_zone)


@pytest.mark.django_db
def test_staff_see_times_in_the_zone_of_their_district(denver):
    audit.record("rename district", by=denver.dana, district=denver.riverside)
    at = AuditEntry.objects.latest("pk").at
    for user, zone, name in (
        (denver.dana, DENVER, "Mountain Time"),
        (denver.state, "America/Chicago", "Central Time"),
    ):
        page = page_of(user, "/console/audit/")
        assert f"{at.astimezone(ZoneInfo(zone)):%M:%S %p}" in page
        assert f'datetime="{at.astimezone(ZoneInfo(zone)).isoformat()}"' in page, user
        assert f"Times are in {name} ({zone})" in page


@pytest.mark.django_db
def test_the_zone_follows_the_memberships(denver):
    assert zone_of_user(denver.dana) == zone_of_user(denver.chen) == DENVER
    assert zone_of_user(denver.state) == "America/Chicago"
    assert zone_of_user(denver.sam) == "America/Chicago"
    # In two zones it is the state's.
    Membership.objects.create(
        user=denver.dana, role="district", district=denver.lakeside
    )
    assert zone_of_user(denver.dana) == "America/Chicago"
    assert zone_of_user(AnonymousUser()) == "America/Chicago"


@pytest.mark.django_db
def test_a_zone_costs_no_statement(denver, django_assert_num_queries):
    with django_assert_num_queries(1):
        assert str(Permissions(denver.chen).time_zone) == DENVER


def test_a_zone_ends_with_its_request():
    def view(request):
        timezone.activate(ZoneInfo(DENVER))
        raise ValueError

    with pytest.raises(ValueError):
        AccessMiddleware(view)(RequestFactory().get("/console/"))
    assert timezone.get_current_timezone_name() == "America/Chicago"


@pytest.mark.django_db
def test_a_district_chooses_its_zone(staff):
    address = f"/console/settings/districts/{staff.riverside.pk}/"
    client = log_in(Client(), staff.dana)
    page = client.get(f"{address}time-zone/").content.decode()
    # The zones of the country come first.
    groups = re.findall(r'<optgroup label="([^"]+)"', page)
    assert groups == ["United States", "Other countries"]
    assert page.index("Mountain Time: Denver") < page.index("Europe/Berlin")
    reply = client.post(f"{address}time-zone/", {"time_zone": DENVER}, follow=True)
    text = reply.content.decode()
    assert "The time zone was saved." in text
    assert "Mountain Time (America/Denver)" in text
    entry = AuditEntry.objects.get(action="change time zone")
    assert (entry.by, entry.district_id) == (staff.dana.email, staff.riverside.pk)
    assert (entry.before, entry.after) == (
        {"time_zone": ""},
        {"time_zone": DENVER},
    )
    repeated = client.post(f"{address}time-zone/", {"time_zone": DENVER}, follow=True)
    assert "Nothing was changed." in repeated.content.decode()
    assert AuditEntry.objects.filter(action="change time zone").count() == 1
    client.post(f"{address}time-zone/", {"time_zone": ""})
    assert zone_of(District.objects.get(pk=staff.riverside.pk)) == zone_of(None)


@pytest.mark.django_db
@pytest.mark.parametrize("typed", ["America/Chicargo", "../etc/passwd", "denver"])
def test_unknown_zones_are_refused(staff, typed):
    address = f"/console/settings/districts/{staff.riverside.pk}/time-zone/"
    reply = log_in(Client(), staff.dana).post(address, {"time_zone": typed})
    assert reply.status_code == 200
    assert District.objects.get(pk=staff.riverside.pk).time_zone == ""


@pytest.mark.django_db
def test_only_administrators_of_the_district_change_its_zone(staff):
    riverside = f"/console/settings/districts/{staff.riverside.pk}/time-zone/"
    lakeside = f"/console/settings/districts/{staff.lakeside.pk}/time-zone/"
    neighbor = member("other@example.org", "district", district=staff.lakeside)
    for user, address in (
        (neighbor, riverside),
        (staff.dana, lakeside),
        (staff.chen, riverside),
        (staff.analyst, riverside),
        (staff.state, "/console/settings/state/time-zone/"),
        (staff.state, f"/console/settings/schools/{staff.lincoln.pk}/time-zone/"),
    ):
        reply = log_in(Client(), user).post(address, {"time_zone": DENVER})
        assert reply.status_code == 404, (user, address)
    with pytest.raises(place_settings.PermissionDenied):
        place_settings.change_time_zone(
            staff.riverside, time_zone=DENVER, by=staff.chen
        )
    assert not District.objects.exclude(time_zone="").exists()
    assert log_in(Client(), staff.state).post(lakeside, {"time_zone": DENVER})
    assert District.objects.get(pk=staff.lakeside.pk).time_zone == DENVER


def test_a_zone_that_no_longer_exists_is_the_states():
    for name in ("", "America/Nowhere", "../etc/passwd", "x\0"):
        assert zone_named(name) == timezone.get_default_timezone()


@pytest.mark.parametrize(
    ("zone", "english", "spanish"),
    [
        ("America/Chicago", "Central Time", "hora central"),
        ("Pacific/Honolulu", "Hawaii-Aleutian Time", "hora de Hawái-Aleutianas"),
        ("Europe/Berlin", "Central European Time", "hora de Europa central"),
        ("Asia/Kolkata", "India Time", "hora de India"),
        ("Etc/UTC", "UTC", "UTC"),
    ],
)
def test_zones_have_names_in_the_readers_language(zone, english, spanish):
    assert zone_label(ZoneInfo(zone)) == f"{english} ({zone})"
    with translation.override("es"):
        assert zone_label(ZoneInfo(zone)) == f"{spanish} ({zone})"


@pytest.mark.parametrize(
    ("zone", "country", "first"),
    [
        ("America/Chicago", "United States", "Eastern Time: Detroit"),
        ("Europe/Berlin", "Germany", "Central European Time: Berlin"),
        ("Asia/Kolkata", "India", "India Time: "),
        # It lies in no country.
        ("Etc/UTC", "United States", "Eastern Time: Detroit"),
    ],
)
def test_zones_of_the_country_come_first(settings, zone, country, first):
    settings.TIME_ZONE = zone
    (name, here), (_, elsewhere) = zone_choices()
    assert name == country
    assert here[0][1].startswith(first)
    known = [key for key, _ in (*here, *elsewhere)]
    assert len(known) == len(set(known)) > 400


def test_another_zone_is_said_where_its_clocks_differ():
    riverside = District(time_zone=DENVER)
    assert also_in(EVENING, None) == ""
    assert also_in(EVENING, riverside) == " (5:30 PM MST)"
    assert clock(EVENING) == "6:30 PM CST"
    # The other day is said too.
    assert also_in(EVENING, District(time_zone="Asia/Kolkata")) == (
        " (Nov. 23, 6:00 AM IST)"
    )
    with timezone.override(ZoneInfo(DENVER)):
        assert also_in(EVENING, riverside) == ""
        # The state's window, for readers in the district.
        assert also_in(EVENING, None) == " (6:30 PM CST)"
    # Phoenix has Denver's time in winter only.
    phoenix, summer = District(time_zone="America/Phoenix"), EVENING.replace(month=7)
    with timezone.override(ZoneInfo(DENVER)):
        assert also_in(EVENING, phoenix) == ""
        assert also_in(summer, phoenix) == " (5:30 PM MST)"
