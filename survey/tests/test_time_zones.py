"""Stacks and districts in several time zones, and the days when clocks change."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from accounts.models import District, QueuedEmail
from accounts.tests.logging_in import log_in
from survey.console.administrations.fields import LocalDateTimeField
from survey.fieldwork.administrations.suggestions import suggest_window
from survey.fieldwork.login_cards.code_emails import write_code
from survey.models import Administration, DayOff
from survey.tests.people import invite

ZONES = ["Pacific/Honolulu", "America/New_York", "Europe/Berlin", "Asia/Kolkata"]
# Half past midnight in Chicago; in Denver it is the day before.
CLOSES = datetime(2037, 3, 3, 6, 30, tzinfo=UTC)


def typed(text):
    field = LocalDateTimeField(label="Opens", required_message="x")
    return field.to_python(text)


def now_is(monkeypatch, moment):
    monkeypatch.setattr(timezone, "now", lambda: moment)


@pytest.fixture
def denver(staff):
    District.objects.filter(pk=staff.riverside.pk).update(time_zone="America/Denver")
    return staff


# The state's zone


@pytest.mark.parametrize(
    ("zone", "day", "opens", "closes"),
    [
        # Clocks went forward that night, and back.
        ("America/New_York", "2027-03-14", 12, 19),
        ("America/New_York", "2027-11-07", 13, 20),
        ("Europe/Berlin", "2027-03-28", 6, 13),
        ("Europe/Berlin", "2027-10-31", 7, 14),
        ("Pacific/Honolulu", "2027-03-14", 18, 25),
        ("Asia/Kolkata", "2027-03-28", 2.5, 9.5),
    ],
)
def test_a_window_of_one_day_is_open_from_eight_to_three(
    settings, monkeypatch, zone, day, opens, closes
):
    settings.TIME_ZONE = zone
    administration = Administration(
        opens_at=typed(f"{day}T08:00"), closes_at=typed(f"{day}T15:00")
    )
    midnight = datetime.fromisoformat(day).replace(tzinfo=UTC)
    window = (administration.opens_at, administration.closes_at)
    hours = [(moment - midnight).total_seconds() / 3600 for moment in window]
    assert hours == [opens, closes]
    for clock, state in (
        (time(7, 59), "planned"),
        (time(8), "closes soon"),
        (time(14, 59), "closes soon"),
        (time(15), "closed"),
    ):
        local = datetime.combine(date.fromisoformat(day), clock, ZoneInfo(zone))
        now_is(monkeypatch, local.astimezone(UTC))
        assert administration.state == state, clock


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("America/New_York", "2027-03-14T02:30"),
        ("America/New_York", "2027-11-07T01:30"),
        ("Europe/Berlin", "2027-03-28T02:30"),
        ("Europe/Berlin", "2027-10-31T02:30"),
    ],
)
def test_a_time_that_comes_twice_or_never_is_refused(settings, zone, text):
    settings.TIME_ZONE = zone
    with pytest.raises(ValidationError, match="clocks change in that hour"):
        typed(text)
    later = datetime.fromisoformat(text).replace(hour=4).isoformat()
    assert typed(later) is not None
    # Elsewhere clocks do not change.
    settings.TIME_ZONE = "Asia/Kolkata"
    assert typed(text) is not None


@pytest.mark.django_db
@pytest.mark.parametrize("zone", ZONES)
def test_school_days_are_suggested_across_a_change_of_clocks(
    settings, monkeypatch, zone
):
    settings.TIME_ZONE = zone
    # Berlin's clocks change on Sunday, New York's have changed two weeks before.
    friday = datetime(2027, 3, 26, 20, tzinfo=ZoneInfo(zone))
    now_is(monkeypatch, friday.astimezone(UTC))
    DayOff.objects.create(name="Easter", first="2027-03-29", last="2027-03-29")
    opens_at, closes_at = map(timezone.localtime, suggest_window(None))
    assert opens_at.isoformat()[:16] == "2027-03-30T08:00"
    assert closes_at.isoformat()[:16] == "2027-04-20T16:00"


# Two zones in a state


@pytest.mark.django_db
def test_a_district_gets_the_next_school_day_of_its_own_clocks(denver, monkeypatch):
    riverside = denver.riverside
    riverside.time_zone = "Pacific/Honolulu"
    # Sunday evening in Honolulu, and Monday morning in Chicago.
    now_is(monkeypatch, datetime(2026, 11, 23, 9, 30, tzinfo=UTC))
    opens_at, closes_at = suggest_window(riverside)
    assert opens_at.isoformat() == "2026-11-23T08:00:00-10:00"
    assert closes_at.isoformat() == "2026-12-14T16:00:00-10:00"
    assert suggest_window(None)[0].isoformat() == "2026-11-24T08:00:00-06:00"


@pytest.mark.django_db
def test_a_window_of_the_state_is_one_moment_for_all(denver, administration):
    opens_at = datetime(2036, 3, 3, 14, tzinfo=UTC)
    Administration.objects.update(opens_at=opens_at, closes_at=CLOSES)
    address = f"/console/administrations/{administration.pk}/"
    for user, written in (
        (denver.state, "March 3, 2036, 8:00 AM CST<"),
        (denver.dana, "March 3, 2036, 7:00 AM MST (8:00 AM CST)<"),
        # The day differs, too.
        (denver.dana, "March 2, 2037, 11:30 PM MST (March 3, 12:30 AM CST)<"),
    ):
        page = log_in(Client(), user).get(address).content.decode()
        assert written in page, user


@pytest.mark.django_db
def test_a_districts_window_names_its_zone_to_the_state(denver, administration):
    Administration.objects.update(district=denver.riverside, closes_at=CLOSES)
    address = f"/console/administrations/{administration.pk}/"
    for user, written in (
        (denver.state, "March 3, 2037, 12:30 AM CST (March 2, 11:30 PM MST)"),
        (denver.dana, "March 2, 2037, 11:30 PM MST<"),
    ):
        page = log_in(Client(), user).get(address).content.decode()
        assert written in page, user
        rows = log_in(Client(), user).get("/console/administrations/").content.decode()
        assert ("(March 2, 11:30 PM MST)" in rows) == (user == denver.state)


@pytest.mark.django_db
def test_staff_type_times_of_their_own_clocks(denver, administration):
    Administration.objects.update(district=denver.riverside)
    address = f"/console/administrations/{administration.pk}/change/"
    client = log_in(Client(), denver.dana)
    form = client.get(address).context["form"]
    assert "Mountain Time (America/Denver)" in form["opens_at"].help_text
    with timezone.override(ZoneInfo("America/Denver")):
        assert typed("2037-03-02T23:30") == CLOSES


@pytest.mark.django_db
def test_an_email_with_a_code_gives_the_days_of_the_district(denver, administration):
    Administration.objects.update(closes_at=CLOSES)
    for school, day in ((denver.lincoln, "2"), (denver.roosevelt, "3")):
        person = invite(administration, school, "1", "Maya", "maya@example.org")
        facts = {"respondent": person.pk, "number": 1, "total": 1}
        written = write_code(QueuedEmail(facts=facts))
        assert written["window"].endswith(f"to March {day}, 2037."), school


@pytest.mark.django_db
def test_a_schools_public_page_gives_the_day_of_its_district(denver, administration):
    Administration.objects.update(closes_at=CLOSES)
    for school, day in ((denver.lincoln, "2"), (denver.roosevelt, "3")):
        page = Client().get(f"/schools/{school.pk}/").content.decode()
        assert re.findall(r"March \d, 2037", page) == [f"March {day}, 2037"], school
