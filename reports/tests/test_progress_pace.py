from __future__ import annotations

from datetime import date

import pytest

from reports.progress_pace import (
    Pace,
    days_without_start,
    needed_per_day,
    pace,
    planned_rates,
    school_days,
)

# A Monday.
MONDAY = date(2026, 11, 16)


def day(number: int) -> date:
    return date(2026, 11, number)


def test_shortfall_is_divided_by_the_remaining_school_days():
    # 14 are missing and 4 finished today: 18 on 5 days.
    assert needed_per_day(18, MONDAY, day(20)) == 4
    assert pace(4, 18, MONDAY, day(20)).words == "4 today, 4 per school day needed"
    assert pace(4, 18, MONDAY, day(20)).verdict == "on track"
    assert pace(3, 18, MONDAY, day(20)).verdict == "too slow"


@pytest.mark.parametrize(
    ("first", "last", "days"),
    [
        (MONDAY, day(16), 1),
        (MONDAY, day(20), 5),
        # Over a weekend.
        (MONDAY, day(23), 6),
        (day(20), day(23), 2),
        (day(21), day(23), 1),
        # If only a weekend is left, its days count.
        (day(21), day(22), 2),
        (day(22), day(22), 1),
        # It is over.
        (day(17), MONDAY, 0),
    ],
)
def test_school_days_leave_weekends_out(first, last, days):
    assert school_days(first, last) == days


def test_no_verdict_on_a_weekend_followed_by_school_days():
    saturday = pace(0, 10, day(21), day(24))
    assert (saturday.words, saturday.verdict) == ("5 per school day needed", "")
    assert pace(0, 10, day(21), day(22)).verdict == "too slow"


def test_no_pace_after_the_last_day():
    assert pace(0, 10, day(17), MONDAY) is None


def test_needed_per_day_stays_the_same_all_day():
    """Each finish lowers what is missing by one and raises today by one."""
    missing, today = 14, 0
    needed = set()
    while missing:
        needed.add(needed_per_day(missing + today, MONDAY, day(20)))
        missing, today = missing - 1, today + 1
    assert needed == {3}


def test_planned_rates_rise_on_school_days_to_the_target():
    steps = planned_rates(day(19), day(24), 50)
    assert steps == {
        day(19): 12.5,
        day(20): 25.0,
        day(21): 25.0,
        day(22): 25.0,
        day(23): 37.5,
        day(24): 50.0,
    }
    assert planned_rates(day(21), day(22), 50) == {day(21): 25.0, day(22): 50.0}


@pytest.mark.parametrize(
    ("last", "today", "words"),
    [
        (None, MONDAY, "No start yet"),
        (MONDAY, MONDAY, ""),
        (MONDAY, day(17), "No start today"),
        (MONDAY, day(18), "No start for 2 school days"),
        # Friday, seen on Monday; then on the weekend.
        (day(13), MONDAY, "No start today"),
        (day(15), MONDAY, "No start today"),
        (day(13), day(14), ""),
        (day(13), day(15), ""),
        (day(12), day(14), "No start on Friday"),
        (day(11), day(15), "No start for 2 school days"),
        (day(6), MONDAY, "No start for 6 school days"),
    ],
)
def test_days_without_start_are_counted_in_school_days(last, today, words):
    assert days_without_start(last, today) == words


def test_thousands_are_grouped():
    assert Pace(1200, 3400).words == "1,200 today, 3,400 per school day needed"
