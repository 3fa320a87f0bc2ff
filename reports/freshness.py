"""Say how old the figures of an administration are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from reports.models import RollUp
from survey.models import Administration

# Figures of open administrations are counted once a minute; older is late.
FRESH_FOR = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Freshness:
    """The age of figures. `is_late` means that pages have to warn."""

    as_of: datetime | None
    seconds: int
    is_late: bool
    words: str


def freshness_of(administration: Administration) -> Freshness:
    now = timezone.now()
    try:
        as_of = administration.roll_up.as_of
    except RollUp.DoesNotExist:
        words = "Not counted yet: the first figures appear within a minute"
        return Freshness(None, 0, True, words)
    # The clock of the database server may be ahead of this one.
    age = max(now - as_of, timedelta())
    ago, is_late = duration(age), age > FRESH_FOR
    words = f"Counted {ago} ago"
    # Final figures may be old, and so may those of upcoming administrations,
    # which are counted once an hour.
    if is_late and as_of >= administration.closes_at:
        words, is_late = f"Counted after closing, {ago} ago", False
    elif is_late and now < administration.opens_at and age < timedelta(hours=2):
        words, is_late = f"Counted {ago} ago; once an hour until it opens", False
    elif is_late:
        words = f"These figures are {ago} old: counting is late"
    return Freshness(as_of, int(age.total_seconds()), is_late, words)


def duration(age: timedelta) -> str:
    """Return "3 minutes" and the like; `rates.js` does the same in the browser."""
    seconds = int(age.total_seconds())
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}s"
    return f"{seconds} second{'' if seconds == 1 else 's'}"
