"""Series for charts: days without school, the last week, and sparklines."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta

import pytest
from django.utils import timezone

from reports.rates import time_series
from reports.rates.progress_pace import LastWeek
from survey.fieldwork.school_calendar import SchoolCalendar
from survey.models import Administration

# A Monday.
TODAY = date(2026, 11, 16)


@pytest.fixture(autouse=True)
def today(monkeypatch):
    real = timezone.localdate
    monkeypatch.setattr(
        timezone, "localdate", lambda value=None: real(value) if value else TODAY
    )


def at(day, hour=12):
    return timezone.make_aware(datetime.combine(day, time(hour)))


def administration(opened, closes=20):
    return Administration(
        opens_at=at(TODAY - timedelta(opened), 8),
        closes_at=at(TODAY + timedelta(closes), 18),
    )


def curve(*finishes):
    """Return a stored curve from (days ago, finished)."""
    return json.dumps(
        [
            [int(at(TODAY - timedelta(days)).timestamp()), finished, finished]
            for days, finished in finishes
        ]
    )


def last_week(text, opened=20, calendar=None, is_exact=True):
    return time_series.last_week(
        text, administration(opened), calendar or SchoolCalendar(), is_exact=is_exact
    )


def test_the_last_week_has_seven_days_without_today():
    text = curve((8, 100), (7, 20), (3, 5), (1, 1), (0, 50))
    assert last_week(text) == LastWeek(26, 5)
    assert last_week(None) == LastWeek(0, 5)


def test_only_school_days_since_the_opening_count():
    assert last_week(curve((4, 9)), opened=4) == LastWeek(9, 2)
    # Opened on Saturday: no school day is over.
    assert last_week(curve((1, 9)), opened=2) is None
    assert last_week("[]", opened=0) is None
    holidays = ((TODAY - timedelta(7), TODAY - timedelta(6)),)
    calendar = SchoolCalendar(holidays=holidays)
    assert last_week(curve((5, 9)), calendar=calendar) == LastWeek(9, 3)


def test_the_last_week_of_few_people_is_hidden():
    assert last_week(curve((3, 9)), is_exact=False) == LastWeek(0, 5, is_hidden=True)
    # The nine waited for a later hour, as they do in the chart.
    text = curve((9, 9), (3, 1))
    assert last_week(text, is_exact=False) == LastWeek(10, 5)


def test_days_without_school_are_marked():
    calendar = SchoolCalendar(holidays=((TODAY, TODAY),))
    points = time_series.by_day(
        [], administration(3, closes=1), eligible=40, needed=20, calendar=calendar
    )
    # Friday, the weekend, the holiday and Tuesday.
    off = [not point.is_school_day for point in points]
    assert off == [False, True, True, True, False]


def test_a_rate_is_never_rounded_up_to_a_threshold():
    # 49.96 % with one decimal; 50.0 % would look like half.
    assert time_series.percentage(1249, 2500) == 49.9
    assert time_series.percentage(1250, 2500) == 50.0
    assert time_series.percentage(1, 0) is None


def test_without_a_threshold_no_pace_is_drawn():
    points = time_series.by_day([], administration(3), eligible=40, needed=0)
    assert {point.pace for point in points} == {None}


def sparkline(text, opened, eligible=40, needed=20):
    hours = time_series.hours_of(text, is_exact=True)
    return time_series.sparkline(
        hours, administration(opened), eligible=eligible, needed=needed
    )


def test_a_sparkline_rises_to_the_rate():
    line = sparkline(curve((1, 5), (0, 5)), opened=1)
    assert line.points == "0.0,29.0 50.0,22.0 100.0,15.0"
    assert (line.threshold, line.week_ago) == (1.0, None)
    # Above the threshold, which is lower then.
    line = sparkline(curve((8, 10), (0, 30)), opened=9)
    assert line.points.startswith("0.0,29.0 10.0,29.0 20.0,22.0")
    assert line.points.endswith("100.0,1.0")
    assert (line.threshold, line.week_ago) == (15.0, 25)


def test_there_is_no_sparkline_of_nothing():
    assert sparkline("[]", opened=5) is None
    assert sparkline(curve((1, 5)), opened=5, eligible=0) is None
