"""Starts and finishes by day and by hour, for a chart and its table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format

from reports.models import Curve
from reports.progress_pace import planned_rates
from reports.suppression import Hour
from survey.models import Administration
from survey.school_calendar import MONDAY_TO_FRIDAY, SchoolCalendar

# A window that was left open for years shows its last year only.
MOST_DAYS = 366


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One day or hour. Rates are in percent, and None for days to come."""

    label: str
    started: int
    finished: int
    rate: float | None
    pace: float | None = None
    day: date | None = None


def hours_of(administration: Administration, level: str, place_id: int) -> list[Hour]:
    """Return the local hours with a start or finish at this place. 1 statement."""
    curves = Curve.objects.filter(
        administration=administration, level=level, place_id=place_id
    )
    found = curves.values_list("hours", flat=True).first()
    zone = timezone.get_current_timezone()
    return [
        (datetime.fromtimestamp(hour, zone), started, finished)
        for hour, started, finished in json.loads(found or "[]")
    ]


def by_day(
    hours: Sequence[Hour],
    administration: Administration,
    *,
    eligible: int,
    needed: int,
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
) -> list[CurvePoint]:
    """Return each day of the window, extended by days outside it with activity."""
    opens = timezone.localdate(administration.opens_at)
    closes = timezone.localdate(administration.closes_at)
    today = timezone.localdate()
    planned = {}
    if eligible:
        planned = planned_rates(opens, closes, 100 * needed / eligible, calendar)
    days: dict[date, list[int]] = {}
    for hour, started, finished in hours:
        sums = days.setdefault(hour.date(), [0, 0])
        sums[0] += started
        sums[1] += finished
    # Pages started in time arrive after closing, and administrations may be
    # moved, so there is activity outside the window.
    first = max(min([opens, *days]), closes - timedelta(MOST_DAYS))
    last = max([closes, *days])
    points, finished_so_far = [], sum(days[day][1] for day in days if day < first)
    for n in range((last - first).days + 1):
        day = first + timedelta(n)
        started, finished = days.get(day, (0, 0))
        finished_so_far += finished
        points.append(
            CurvePoint(
                label=date_format(day, "D, N j"),
                started=started,
                finished=finished,
                rate=percentage(finished_so_far, eligible) if day <= today else None,
                pace=planned.get(day),
                day=day,
            )
        )
    return points


def by_hour(hours: Sequence[Hour], day: date, *, eligible: int) -> list[CurvePoint]:
    """Return the hours of a day, from the first with activity to the last."""
    active = {hour: numbers for hour, *numbers in hours if hour.date() == day}
    if not active:
        return []
    finished_so_far = sum(finished for hour, _, finished in hours if hour.date() < day)
    points: list[CurvePoint] = []
    hour, last = min(active), max(active)
    while hour <= last:
        started, finished = active.get(hour, (0, 0))
        finished_so_far += finished
        rate = percentage(finished_so_far, eligible)
        label = date_format(hour, "TIME_FORMAT")
        points.append(CurvePoint(label, started, finished, rate))
        # Add the hour in UTC: when daylight saving time ends, one local hour
        # comes twice.
        hour = (hour.astimezone(UTC) + timedelta(hours=1)).astimezone(hour.tzinfo)
    return points


def day_to_show(hours: Sequence[Hour], requested: str) -> date | None:
    """Return the requested day (ISO format), or else the last with activity."""
    days = {hour.date() for hour, *_ in hours}
    try:
        chosen = date.fromisoformat(requested)
    except ValueError:
        chosen = None
    return chosen if chosen in days else max(days, default=None)


def chart_data(points: Sequence[CurvePoint]) -> dict[str, object]:
    """Return the series that `charts.js` draws."""
    return {
        "labels": [point.label for point in points],
        "started": [point.started for point in points],
        "finished": [point.finished for point in points],
        "rate": [point.rate for point in points],
        "pace": [point.pace for point in points],
    }


def percentage(part: int, whole: int) -> float | None:
    """Return `part` in percent of `whole`, with one decimal."""
    return round(100 * part / whole, 1) if whole else None
