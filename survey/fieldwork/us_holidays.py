"""Holidays of schools in the United States.

Those of the federal government, and the breaks around Thanksgiving and the turn of
the year.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

MONDAY, THURSDAY, SATURDAY, SUNDAY = 0, 3, 5, 6


class Holiday(NamedTuple):
    name: str
    first: date
    last: date


def school_year(day: date) -> int:
    """Return the calendar year in which a day's school year began, in July."""
    return day.year if day.month >= 7 else day.year - 1


def us_school_holidays(year: int) -> list[Holiday]:
    """Return the holidays from July of `year` to June of the next, in order."""
    thanksgiving = nth_weekday(4, THURSDAY, year, 11)
    after = year + 1
    days = (
        ("Independence Day", observed(date(year, 7, 4))),
        ("Labor Day", nth_weekday(1, MONDAY, year, 9)),
        ("Columbus Day / Indigenous Peoples’ Day", nth_weekday(2, MONDAY, year, 10)),
        ("Veterans Day", observed(date(year, 11, 11))),
        ("Martin Luther King Jr. Day", nth_weekday(3, MONDAY, after, 1)),
        ("Presidents’ Day", nth_weekday(3, MONDAY, after, 2)),
        # The last Monday of May.
        ("Memorial Day", date(after, 5, 31) - timedelta(date(after, 5, 31).weekday())),
        ("Juneteenth", observed(date(after, 6, 19))),
    )
    holidays = [Holiday(name, day, day) for name, day in days]
    holidays += [
        Holiday("Thanksgiving", thanksgiving, thanksgiving + timedelta(1)),
        Holiday("Winter break", date(year, 12, 24), date(after, 1, 1)),
    ]
    return sorted(holidays, key=lambda holiday: holiday.first)


def nth_weekday(n: int, weekday: int, year: int, month: int) -> date:
    first = date(year, month, 1)
    return first + timedelta((weekday - first.weekday()) % 7 + 7 * (n - 1))


def observed(day: date) -> date:
    """Return the day on which a fixed holiday is kept: none falls on a weekend."""
    shift = {SATURDAY: -1, SUNDAY: 1}.get(day.weekday(), 0)
    return day + timedelta(shift)
