"""Compare recent finishes with the daily pace that a threshold needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from survey.fieldwork.school_calendar import (
    MONDAY_TO_FRIDAY,
    SchoolCalendar,
    SchoolCalendars,
)
from survey.models import Administration

# No school is closed for longer; a calendar may say so by mistake.
LONGEST_BREAK = 120
# A weekday alone names one of the last seven days.
WEEK = 7


def calendars_for(administrations: Iterable[Administration]) -> SchoolCalendars:
    """Return the calendars of the time that the figures are about."""
    days = [timezone.localdate()]
    for administration in administrations:
        days.append(timezone.localdate(administration.opens_at))
        days.append(timezone.localdate(administration.closes_at))
    # Before the opening too: the last school day may have been then.
    return SchoolCalendars(min(days) - timedelta(LONGEST_BREAK), max(days))


def school_days(
    first: date, last: date, calendar: SchoolCalendar = MONDAY_TO_FRIDAY
) -> int:
    """Count the school days between two days, both included.

    If only a weekend or holidays are left, their days count, because there are no
    others; if the last day is over, the result is 0.
    """
    days = [first + timedelta(n) for n in range((last - first).days + 1)]
    return sum(map(calendar.is_school_day, days)) or len(days)


def needed_per_day(
    shortfall: int,
    first: date,
    last: date,
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
) -> int | None:
    """Return how many have to finish per remaining school day, today included.

    `shortfall` ÷ school days from today to the closing day, rounded up.
    `shortfall` is the number missing to the threshold when today began, so the
    result is the same all day and today's finishes can be measured against it.
    None if no day is left.
    """
    days = school_days(first, last, calendar)
    # Integer division that rounds up, without the errors of floats.
    return -(-shortfall // days) if days else None


@dataclass(frozen=True, slots=True)
class LastWeek:
    """How many people finished on the school days of the seven days before today."""

    finished: int
    school_days: int
    # True where they are too few to be shown; `finished` is 0 then.
    is_hidden: bool = False

    @property
    def per_day(self) -> int:
        """Round down: nobody gets on track by rounding."""
        return self.finished // self.school_days


@dataclass(frozen=True, slots=True)
class Pace:
    """How many people are needed per school day, and how many came.

    `today` is None where it is too small to be shown.
    """

    today: int | None
    per_day: int
    # False on days without school: no school is too slow on a Saturday.
    counts_today: bool = True
    # None before the first school day is over.
    last_week: LastWeek | None = None

    @property
    def compares(self) -> str:
        """Return what came: "week", "today", or "" where there was no school day.

        A good day counts at once, also after a bad week.
        """
        if self.last_week is None:
            return "today" if self.counts_today else ""
        is_good_day = self._reaches(self.today)
        return "today" if is_good_day and not self._reached_last_week else "week"

    @property
    def is_enough(self) -> bool:
        return self._reached_last_week or self._reaches(self.today)

    @property
    def verdict(self) -> str:
        if not self.compares:
            return ""
        if self.is_enough:
            return _("on track")
        # Today is not over yet: only a week can be too slow.
        if self.last_week is None or self.last_week.is_hidden:
            return ""
        return _("too slow")

    @property
    def _reached_last_week(self) -> bool:
        return self.last_week is not None and self._reaches(self.last_week.per_day)

    def _reaches(self, number: int | None) -> bool:
        return number is not None and number >= self.per_day


def pace(
    today: int | None,
    shortfall: int,
    first: date,
    last: date,
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
    last_week: LastWeek | None = None,
) -> Pace | None:
    """Return the pace as of the day `first`, or None if no day is left."""
    per_day = needed_per_day(shortfall, first, last, calendar)
    if per_day is None:
        return None
    # Then the days of the weekend count, and a verdict is due on them.
    only_days_off = school_days(first, last, calendar) == (last - first).days + 1
    counts_today = calendar.is_school_day(first) or only_days_off
    return Pace(today, per_day, counts_today, last_week)


def last_school_day(today: date, calendar: SchoolCalendar = MONDAY_TO_FRIDAY) -> date:
    """Return today, or the school day before if today is without school."""
    days = (today - timedelta(n) for n in range(LONGEST_BREAK))
    return next(filter(calendar.is_school_day, days), today)


def days_without_start(
    last: date | None, today: date, calendar: SchoolCalendar = MONDAY_TO_FRIDAY
) -> str:
    """Describe how many school days have passed without a start; "" if none.

    Today is not over yet, and does not count.
    """
    if last is None:
        return _("No start yet")
    latest = last_school_day(today - timedelta(1), calendar)
    if last >= latest:
        return ""
    # Not `school_days`: the day after the last start may be a weekend, and
    # then its days must not count.
    first = last + timedelta(1)
    days = sum(
        calendar.is_school_day(first + timedelta(n))
        for n in range((latest - first).days + 1)
    )
    if days > 1:
        return _("No start for %(days)s school days") % {"days": days}
    is_recent = today - latest < timedelta(WEEK)
    day = date_format(latest, "l" if is_recent else "MONTH_DAY_FORMAT")
    return _("No start on %(day)s") % {"day": day}


def planned_rates(
    opens: date,
    closes: date,
    target: float,
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
) -> dict[date, float]:
    """Return the rate, in percent, that each day of the window should end with.

    It rises in equal steps on school days, from zero to `target` on the last.
    """
    whole, done, rates = school_days(opens, closes, calendar), 0, {}
    days = [opens + timedelta(n) for n in range((closes - opens).days + 1)]
    only_days_off = not any(map(calendar.is_school_day, days))
    for day in days:
        done += only_days_off or calendar.is_school_day(day)
        rates[day] = round(target * done / whole, 1)
    return rates
