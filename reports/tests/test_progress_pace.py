from __future__ import annotations

from datetime import date

import pytest

from reports.progress_pace import (
    Pace,
    days_without_start,
    last_school_day,
    needed_per_day,
    pace,
    planned_rates,
    school_days,
)
from survey.school_calendar import SchoolCalendar

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


# Monday to Wednesday are school days, then Thanksgiving, Friday and the weekend.
THANKSGIVING = SchoolCalendar(holidays=((day(26), day(27)),))


def test_holidays_are_no_school_days():
    assert school_days(day(23), day(30)) == 6
    assert school_days(day(23), day(30), THANKSGIVING) == 4
    # 12 in 4 days; without the calendar, in 6.
    assert needed_per_day(12, day(23), day(30), THANKSGIVING) == 3
    assert needed_per_day(12, day(23), day(30)) == 2
    # Only days off are left, and so they count.
    assert needed_per_day(12, day(26), day(29), THANKSGIVING) == 3


def test_no_verdict_on_a_holiday():
    on_holiday = pace(0, 12, day(26), day(30), THANKSGIVING)
    assert (on_holiday.per_day, on_holiday.verdict) == (12, "")
    assert pace(0, 12, day(25), day(30), THANKSGIVING).verdict == "too slow"


def test_planned_rates_stay_on_holidays():
    steps = planned_rates(day(25), day(30), 50, THANKSGIVING)
    assert [*steps.values()] == [25.0, 25.0, 25.0, 25.0, 25.0, 50.0]


@pytest.mark.parametrize(
    ("last", "today", "words"),
    [
        (day(25), day(26), ""),
        (day(25), day(29), ""),
        (day(24), day(29), "No start on Wednesday"),
        (day(23), day(29), "No start for 2 school days"),
        (day(25), day(30), "No start today"),
    ],
)
def test_days_without_start_leave_holidays_out(last, today, words):
    assert days_without_start(last, today, THANKSGIVING) == words


def test_after_a_long_break_the_last_school_day_has_its_date():
    winter = SchoolCalendar(holidays=((date(2026, 12, 21), date(2027, 1, 1)),))
    assert days_without_start(date(2026, 12, 17), date(2027, 1, 3), winter) == (
        "No start on Dec. 18"
    )
    assert last_school_day(date(2027, 1, 3), winter) == date(2026, 12, 18)


def test_a_calendar_without_school_days_ends():
    never = SchoolCalendar(holidays=((date(2000, 1, 1), date(2100, 1, 1)),))
    assert last_school_day(day(26), never) == day(26)
