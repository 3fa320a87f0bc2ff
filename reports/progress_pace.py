"""Compare today's finishes with the daily pace that a threshold needs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from reports.suppression import SMALLEST_HOUR

SATURDAY = 5


def school_days(first: date, last: date) -> int:
    """Count Mondays to Fridays between two days, both included.

    Holidays are not known here. If only a weekend is left, its days count,
    because there are no others; if the last day is over, the result is 0.
    """
    days = [first + timedelta(n) for n in range((last - first).days + 1)]
    return sum(day.weekday() < SATURDAY for day in days) or len(days)


def needed_per_day(shortfall: int, first: date, last: date) -> int | None:
    """Return how many have to finish per remaining school day, today included.

    `shortfall` ÷ school days from today to the closing day, rounded up.
    `shortfall` is the number missing to the threshold when today began, so the
    result is the same all day and today's finishes can be measured against it.
    None if no day is left.
    """
    days = school_days(first, last)
    # Integer division that rounds up, without the errors of floats.
    return -(-shortfall // days) if days else None


@dataclass(frozen=True, slots=True)
class Pace:
    """How many people finished today, and how many are needed per school day.

    `today` is None where it is too small to be shown.
    """

    today: int | None
    per_day: int
    # False on a weekend: no school is too slow on a Saturday.
    counts_today: bool = True

    @property
    def is_enough(self) -> bool:
        return self.today is not None and self.today >= self.per_day

    @property
    def verdict(self) -> str:
        if not self.counts_today or self.today is None:
            return ""
        return "on track" if self.is_enough else "too slow"

    @property
    def words(self) -> str:
        needed = f"{self.per_day:,} per school day needed"
        if not self.counts_today:
            return needed
        if self.today is None:
            return f"Fewer than {SMALLEST_HOUR} today, {needed}"
        return f"{self.today:,} today, {needed}"


def pace(today: int | None, shortfall: int, first: date, last: date) -> Pace | None:
    """Return the pace as of the day `first`, or None if no day is left."""
    per_day = needed_per_day(shortfall, first, last)
    if per_day is None:
        return None
    # Then the days of the weekend count, and a verdict is due on them.
    only_weekend = school_days(first, last) == (last - first).days + 1
    return Pace(today, per_day, first.weekday() < SATURDAY or only_weekend)


def last_school_day(today: date) -> date:
    """Return today, or the Friday before if today is on a weekend."""
    return today - timedelta(max(today.weekday() - SATURDAY + 1, 0))


def days_without_start(last: date | None, today: date) -> str:
    """Describe how many school days have passed without a start; "" if none."""
    if last is None:
        return "No start yet"
    latest = last_school_day(today)
    if last >= latest:
        return ""
    # Not `school_days`: the day after the last start may be a weekend, and
    # then its days must not count.
    first = last + timedelta(1)
    days = sum(
        (first + timedelta(n)).weekday() < SATURDAY
        for n in range((latest - first).days + 1)
    )
    if days > 1:
        return f"No start for {days} school days"
    return "No start today" if latest == today else "No start on Friday"


def planned_rates(opens: date, closes: date, target: float) -> dict[date, float]:
    """Return the rate, in percent, that each day of the window should end with.

    It rises in equal steps on school days, from zero to `target` on the last.
    """
    whole, done, rates = school_days(opens, closes), 0, {}
    days = [opens + timedelta(n) for n in range((closes - opens).days + 1)]
    only_weekend = all(day.weekday() >= SATURDAY for day in days)
    for day in days:
        done += only_weekend or day.weekday() < SATURDAY
        rates[day] = round(target * done / whole, 1)
    return rates
