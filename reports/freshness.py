"""Say how old the figures of an administration are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime

from reports.models import RollUp
from reports.suppression import SMALLEST_GRADE
from survey.models import Administration, Denominator

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


def groups_in_words(administration: Administration, waiting: int = 0) -> str:
    """Say which rosters the figures follow; "" where they follow each change."""
    try:
        as_of = administration.roll_up.groups_as_of
    except RollUp.DoesNotExist:
        as_of = None
    if as_of is None or not administration.is_completion_confidential:
        return ""
    if administration.denominator == Denominator.COUNT:
        return ""
    words = f"Schools and grades as of {date_format(localtime(as_of), 'DATE_FORMAT')}."
    if not waiting:
        return words
    changes = "1 change" if waiting == 1 else f"{waiting:,} changes"
    return (
        f"{words} {changes} of the roster not counted yet: changes count from the"
        f" next day, once at least {SMALLEST_GRADE} people change in the same way, so"
        " that the figures say nothing about one person."
    )


def duration(age: timedelta) -> str:
    """Return "3 minutes" and the like; `rates.js` does the same in the browser."""
    seconds = int(age.total_seconds())
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}s"
    return f"{seconds} second{'' if seconds == 1 else 's'}"
