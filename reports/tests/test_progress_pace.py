"""How many have to finish on each day that is left."""

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


def test_what_is_owed_is_shared_out_over_the_school_days_that_are_left():
    # 14 are missing, and 4 of those who finished came today: 18 on 5 days.
    assert needed_per_day(18, MONDAY, day(20)) == 4
    assert pace(4, 18, MONDAY, day(20)).words == "4 today, 4 a school day needed"
    assert pace(4, 18, MONDAY, day(20)).verdict == "enough"
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
        # Nothing but a weekend is left: then its days count.
        (day(21), day(22), 2),
        (day(22), day(22), 1),
        # It is over.
        (day(17), MONDAY, 0),
    ],
)
def test_weekends_are_no_school_days(first, last, days):
    assert school_days(first, last) == days


def test_on_a_weekend_nobody_is_too_slow():
    saturday = pace(0, 10, day(21), day(24))
    assert (saturday.words, saturday.verdict) == ("5 a school day needed", "")
    assert pace(0, 10, day(21), day(22)).verdict == "too slow"


def test_the_pace_of_a_window_that_is_over_is_none():
    assert pace(0, 10, day(17), MONDAY) is None


def test_the_number_holds_all_day_long():
    """Each finish takes one from what is missing and adds one to today."""
    missing, today = 14, 0
    asked = set()
    while missing:
        asked.add(needed_per_day(missing + today, MONDAY, day(20)))
        missing, today = missing - 1, today + 1
    assert asked == {3}


def test_the_planned_curve_rises_on_school_days_to_the_target():
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
def test_a_silence_is_counted_in_school_days(last, today, words):
    assert days_without_start(last, today) == words


def test_thousands_are_grouped():
    assert Pace(1200, 3400).words == "1,200 today, 3,400 a school day needed"
