"""Starts and finishes by day and by hour, ready for a chart and for a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.utils import timezone

from reports.models import Curve
from reports.progress_pace import planned
from reports.rates import opening_days
from survey.models import Administration

# A window that somebody left open for years is drawn from its last year.
MOST_DAYS = 366


@dataclass(frozen=True, slots=True)
class Point:
    """One day or hour. The rates are in percent; None is not yet."""

    label: str
    started: int
    finished: int
    rate: float | None
    pace: float | None = None
    day: date | None = None


def hours_of(
    administration: Administration, level: str, place_id: int
) -> list[tuple[datetime, int, int]]:
    """Local hours in which something happened. 1 statement."""
    found = (
        Curve.objects.filter(
            administration=administration, level=level, place_id=place_id
        )
        .values_list("hours", flat=True)
        .first()
    )
    zone = timezone.get_current_timezone()
    return [
        (datetime.fromtimestamp(hour, zone), started, finished)
        for hour, started, finished in json.loads(found or "[]")
    ]


def by_day(
    hours: Sequence[tuple[datetime, int, int]],
    administration: Administration,
    *,
    eligible: int,
    needed: int,
) -> list[Point]:
    """Each day of the window, and what happened outside of it on its edges."""
    opens, closes = opening_days(administration)
    today = timezone.localdate()
    steps = planned(opens, closes, 100 * needed / eligible) if eligible else {}
    days: dict[date, list[int]] = {}
    for hour, started, finished in hours:
        sums = days.setdefault(hour.date(), [0, 0])
        sums[0] += started
        sums[1] += finished
    first = max(min([opens, *days]), closes - timedelta(MOST_DAYS))
    last = max([closes, *days])
    points, done = [], sum(days[day][1] for day in days if day < first)
    for n in range((last - first).days + 1):
        day = first + timedelta(n)
        started, finished = days.get(day, (0, 0))
        done += finished
        points.append(
            Point(
                label=f"{day:%a}, {day:%b} {day.day}",
                started=started,
                finished=finished,
                rate=_share(done, eligible) if day <= today else None,
                pace=steps.get(day),
                day=day,
            )
        )
    return points


def by_hour(
    hours: Sequence[tuple[datetime, int, int]], day: date, *, eligible: int
) -> list[Point]:
    """From the day's first hour in which something happened to its last."""
    of_day = {hour: both for hour, *both in hours if hour.date() == day}
    done = sum(finished for hour, _, finished in hours if hour.date() < day)
    points: list[Point] = []
    if not of_day:
        return points
    hour, last = min(of_day), max(of_day)
    while hour <= last:
        started, finished = of_day.get(hour, (0, 0))
        done += finished
        points.append(Point(f"{hour:%H:%M}", started, finished, _share(done, eligible)))
        # By the clock of the world: on the day that clocks are turned back,
        # one hour of the wall comes twice.
        hour = (hour.astimezone(UTC) + timedelta(hours=1)).astimezone(hour.tzinfo)
    return points


def day_to_show(hours: Sequence[tuple[datetime, int, int]], asked: str) -> date | None:
    """The one that was asked for, or the last on which something happened."""
    days = {hour.date() for hour, *_ in hours}
    try:
        chosen = date.fromisoformat(asked)
    except ValueError:
        chosen = None
    return chosen if chosen in days else max(days, default=None)


def for_chart(points: Sequence[Point]) -> dict[str, Any]:
    return {
        "labels": [point.label for point in points],
        "started": [point.started for point in points],
        "finished": [point.finished for point in points],
        "rate": [point.rate for point in points],
        "pace": [point.pace for point in points],
    }


def _share(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None
