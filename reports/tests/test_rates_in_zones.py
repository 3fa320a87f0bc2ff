"""Days of response rates, for readers in two time zones and in other states."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from reports.rates import time_series
from reports.rates.rollup_query import _hour_offset, _midnight
from reports.suppression.rates import last_start_to_show
from survey.models import Administration

DENVER = ZoneInfo("America/Denver")
# Half past midnight in Chicago; in Denver it is the day before.
NIGHT = datetime(2026, 11, 17, 6, 30, tzinfo=UTC)


def curve(*hours):
    return json.dumps([[int(hour.timestamp()), n, n] for hour, n in hours])


def days_of(text, *, is_exact=True):
    """Return the starts of each day that a reader sees."""
    hours = time_series.hours_of(text, is_exact=is_exact)
    window = Administration(
        opens_at=NIGHT - timedelta(days=2), closes_at=NIGHT + timedelta(days=2)
    )
    points = time_series.by_day(hours, window, eligible=100, needed=50)
    return {point.day.day: point.started for point in points if point.started}


def test_readers_see_the_days_of_their_own_clocks():
    text = curve((NIGHT.replace(minute=0), 8), (NIGHT + timedelta(hours=9), 9))
    assert days_of(text) == {17: 17}
    with timezone.override(DENVER):
        assert days_of(text) == {16: 8, 17: 9}


def test_few_people_are_joined_alike_for_readers_in_all_zones():
    # Three at midnight: as a difference of two days they would be seen.
    text = curve((NIGHT.replace(minute=0), 3), (NIGHT + timedelta(hours=9), 9))
    assert days_of(text, is_exact=False) == {17: 12}
    with timezone.override(DENVER):
        assert days_of(text, is_exact=False) == {17: 12}
        # There is something to see.
        assert days_of(text) == {16: 3, 17: 9}


def test_the_day_of_the_last_start_is_the_states_for_all():
    with timezone.override(DENVER):
        shown = last_start_to_show(NIGHT, exact=False)
        assert timezone.localdate(shown) == date(2026, 11, 17)
        exact = last_start_to_show(NIGHT, exact=True)
        assert timezone.localdate(exact) == date(2026, 11, 16)
    shown = last_start_to_show(NIGHT, exact=False)
    assert timezone.localdate(shown) == date(2026, 11, 17)


@pytest.mark.parametrize(
    ("zone", "offset", "midnight"),
    [
        ("America/Chicago", 0, datetime(2026, 11, 17, 6, tzinfo=UTC)),
        ("Pacific/Honolulu", 0, datetime(2026, 11, 16, 10, tzinfo=UTC)),
        ("Europe/Berlin", 0, datetime(2026, 11, 16, 23, tzinfo=UTC)),
        ("Asia/Kolkata", 1800, datetime(2026, 11, 16, 18, 30, tzinfo=UTC)),
    ],
)
def test_roll_ups_have_the_days_and_hours_of_the_state(
    settings, zone, offset, midnight
):
    settings.TIME_ZONE = zone
    with timezone.override(DENVER):
        assert (_hour_offset(), _midnight(NIGHT)) == (offset, midnight)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/New_York", date(2027, 3, 14), 23),
        ("America/New_York", date(2027, 11, 7), 25),
        ("Europe/Berlin", date(2027, 3, 28), 23),
        ("Europe/Berlin", date(2027, 10, 31), 25),
        ("Pacific/Honolulu", date(2027, 3, 14), 24),
        ("Asia/Kolkata", date(2027, 3, 28), 24),
    ],
)
def test_a_day_has_as_many_hours_as_its_clocks(settings, zone, day, hours):
    settings.TIME_ZONE = zone
    first = time_series.midnight(day)
    last = time_series.midnight(day + timedelta(days=1)) - timedelta(hours=1)
    # As `_hour_offset` cuts them.
    text = curve((first, 5), (last, 5))
    active = time_series.hours_of(text, is_exact=True)
    points = time_series.by_hour(active, day, eligible=100)
    assert len(points) == hours
    assert (points[0].label, points[-1].label) == ("12:00 AM", "11:00 PM")
