from __future__ import annotations

import re
from datetime import date

import pytest
from django.template.loader import render_to_string

from reports.rates.progress_pace import (
    LastWeek,
    Pace,
    days_without_start,
    last_school_day,
    needed_per_day,
    pace,
    planned_rates,
    school_days,
)
from survey.fieldwork.school_calendar import SchoolCalendar

# A Monday.
MONDAY = date(2026, 11, 16)


def day(number: int) -> date:
    return date(2026, 11, number)


def test_shortfall_is_divided_by_the_remaining_school_days():
    # 14 are missing and 4 finished today: 18 on 5 days.
    assert needed_per_day(18, MONDAY, day(20)) == 4
    assert pace(4, 18, MONDAY, day(20)).per_day == 4
    assert pace(4, 18, MONDAY, day(20)).verdict == "on track"
    # It may still become enough.
    assert pace(3, 18, MONDAY, day(20)).verdict == ""


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
    assert (saturday.per_day, saturday.compares, saturday.verdict) == (5, "", "")
    assert pace(5, 10, day(21), day(22)).verdict == "on track"


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
        # Today is not over yet.
        (MONDAY, day(17), ""),
        (MONDAY, day(18), "No start on Tuesday"),
        (MONDAY, day(19), "No start for 2 school days"),
        # Friday, seen on Monday; then on the weekend.
        (day(13), MONDAY, ""),
        (day(15), MONDAY, ""),
        (day(12), MONDAY, "No start on Friday"),
        (day(13), day(14), ""),
        (day(13), day(15), ""),
        (day(12), day(14), "No start on Friday"),
        (day(11), day(15), "No start for 2 school days"),
        (day(6), MONDAY, "No start for 5 school days"),
    ],
)
def test_days_without_start_are_counted_in_school_days(last, today, words):
    assert days_without_start(last, today) == words


def words_of(pace):
    text = render_to_string("reports/_rates_pace.html", {"pace": pace})
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_thousands_are_grouped():
    words = "3,400 a day are needed; 1,200 came today."
    assert words_of(Pace(1200, 3400)) == words


@pytest.mark.parametrize(
    ("today", "week", "words"),
    [
        (0, LastWeek(25, 5), "5 a day came in the last week. on track"),
        (0, LastWeek(19, 5), "3 a day came in the last week. too slow"),
        # Rounded down, and nobody is on track by rounding.
        (0, LastWeek(4, 5), "fewer than 1 a day came in the last week. too slow"),
        (0, LastWeek(0, 5), "no one came in the last week. too slow"),
        # A good day counts at once; a bad one says nothing after a good week.
        (4, LastWeek(0, 5), "4 came today. on track"),
        (0, LastWeek(20, 5), "4 a day came in the last week. on track"),
        # Where small numbers are hidden.
        (None, LastWeek(0, 5, is_hidden=True), "fewer than 10 came in the last week."),
        (None, None, "fewer than 10 came today."),
        # Today may still become enough.
        (0, None, "0 came today."),
        (None, LastWeek(15, 5), "3 a day came in the last week. too slow"),
        (12, None, "12 came today. on track"),
    ],
)
def test_the_pace_is_a_sentence(today, week, words):
    sentence = f"4 a day are needed; {words}"
    assert words_of(Pace(today, 4, last_week=week)) == sentence


def test_one_is_needed():
    assert words_of(Pace(0, 1)).startswith("1 a day is needed; 0 came today.")


def test_on_a_day_off_the_last_week_counts():
    assert words_of(Pace(0, 5, counts_today=False)) == "5 a day are needed."
    saturday = Pace(0, 5, False, LastWeek(30, 5))
    assert saturday.verdict == "on track"


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
    assert pace(12, 12, day(25), day(30), THANKSGIVING).verdict == "on track"


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
        (day(25), day(30), ""),
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


def test_a_school_without_a_start_has_that_badge_alone():
    on_track = {"pace": Pace(0, 4, last_week=LastWeek(20, 5))}
    text = render_to_string("reports/_rates_pace.html", on_track)
    assert "on track" in text
    quiet = {**on_track, "quiet": "No start for 3 school days"}
    text = render_to_string("reports/_rates_pace.html", quiet)
    assert "badge" not in text and "4 a day came in the last week" in text
