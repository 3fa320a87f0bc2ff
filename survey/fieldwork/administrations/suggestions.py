"""Suggest a short name and a window for a new administration."""

from __future__ import annotations

from datetime import datetime, time, timedelta

from django.utils import timezone
from django.utils.text import slugify

from accounts.models import District
from accounts.time_zones import zone_of
from survey.fieldwork.administrations.queries import MAX_NAME_LENGTH
from survey.fieldwork.school_calendar import SchoolCalendars
from survey.models import Administration

OPENS_AT = time(8)
CLOSES_AT = time(16)
# Long enough for every class, and for reminders.
WINDOW = timedelta(weeks=3)
# A summer holiday and the window after it.
MOST_DAYS_AHEAD = 150


def suggest_name(*, role: str, wave: str = "", district: District | None = None) -> str:
    """Build a free short name from the owner, the wave and the role."""
    parts = (district.code if district else "", wave, f"{role}s" if role else "")
    # Four characters remain for a number.
    base = slugify(" ".join(parts))[: MAX_NAME_LENGTH - 4].strip("-_") or "survey"
    similar = Administration.objects.filter(name__startswith=base)
    taken = set(similar.values_list("name", flat=True))
    names = (f"{base}-{n}" if n > 1 else base for n in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def suggest_window(owner: District | None) -> tuple[datetime, datetime]:
    """Return the morning of the next school day, and an afternoon three weeks later.

    Both by the clocks of the owner. 1 statement, for the holidays.
    """
    zone = zone_of(owner)
    today = timezone.localdate(timezone=zone)
    last = today + timedelta(days=MOST_DAYS_AHEAD)
    calendar = SchoolCalendars(today, last).of(owner.pk if owner else None)
    days = [today + timedelta(days=n) for n in range(1, MOST_DAYS_AHEAD)]
    school_days = [day for day in days if calendar.is_school_day(day)] or days
    first = school_days[0]
    ends = [day for day in school_days if day >= first + WINDOW] or [first + WINDOW]
    return (
        datetime.combine(first, OPENS_AT, zone),
        datetime.combine(ends[0], CLOSES_AT, zone),
    )
