"""Today against the pace that a threshold asks for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

SATURDAY = 5


def school_days(first: date, last: date) -> int:
    """Mondays to Fridays from one day to another, both included.

    Holidays are not known here. Where only a weekend is left its days count,
    since nobody has others; and a last day that is over leaves none.
    """
    days = [first + timedelta(n) for n in range((last - first).days + 1)]
    return sum(one.weekday() < SATURDAY for one in days) or len(days)


def a_day(owed: int, first: date, last: date) -> int | None:
    """How many have to finish on each school day that is left, today included.

    owed ÷ school days from today to the closing day, rounded up, where `owed`
    is what was missing to the threshold when today began: so the number holds
    all day long, and today's finishes are measured against it. None when no
    day is left.
    """
    days = school_days(first, last)
    return -(-owed // days) if days else None


@dataclass(frozen=True, slots=True)
class Pace:
    """How many finished today, and how many a school day has to bring."""

    today: int
    a_day: int
    # On a Saturday nobody is too slow.
    is_asked_today: bool = True

    @property
    def is_enough(self) -> bool:
        return self.today >= self.a_day

    @property
    def verdict(self) -> str:
        if not self.is_asked_today:
            return ""
        return "enough" if self.is_enough else "too slow"

    @property
    def words(self) -> str:
        needed = f"{self.a_day:,} a school day needed"
        return f"{self.today:,} today, {needed}" if self.is_asked_today else needed


def pace(today: int, owed: int, first: date, last: date) -> Pace | None:
    """See `a_day`; None when no day is left."""
    each = a_day(owed, first, last)
    if each is None:
        return None
    only_weekend = school_days(first, last) == (last - first).days + 1
    return Pace(today, each, first.weekday() < SATURDAY or only_weekend)


def last_school_day(today: date) -> date:
    """Today, or on a weekend its Friday."""
    return today - timedelta(max(today.weekday() - SATURDAY + 1, 0))


def silence(last: date | None, today: date) -> str:
    """For how many school days nobody has started; nothing where it is none."""
    if last is None:
        return "No start yet"
    friday = last_school_day(today)
    if last >= friday:
        return ""
    # The day after the last start may be a weekend, of which no day counts.
    first = last + timedelta(1)
    days = sum(
        (first + timedelta(n)).weekday() < SATURDAY
        for n in range((friday - first).days + 1)
    )
    if days > 1:
        return f"No start for {days} school days"
    return "No start today" if friday == today else "No start on Friday"


def planned(opens: date, closes: date, target: float) -> dict[date, float]:
    """The rate, in percent, that each day of the window should end with.

    In equal steps on school days from nothing to `target` on the last day.
    """
    whole, done, steps = school_days(opens, closes), 0, {}
    only_weekend = all(
        (opens + timedelta(n)).weekday() >= SATURDAY
        for n in range((closes - opens).days + 1)
    )
    for n in range((closes - opens).days + 1):
        day = opens + timedelta(n)
        done += only_weekend or day.weekday() < SATURDAY
        steps[day] = round(target * done / whole, 1)
    return steps
