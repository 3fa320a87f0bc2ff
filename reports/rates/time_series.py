"""Starts and finishes by day and by hour, for a chart and its table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from reports.models import Curve
from reports.rates.progress_pace import WEEK, LastWeek, planned_rates
from reports.suppression import HIDDEN
from reports.suppression.rates import Hour, join_small_hours
from survey.fieldwork.school_calendar import MONDAY_TO_FRIDAY, SchoolCalendar
from survey.models import Administration

# A window that was left open for years shows its last year only.
MOST_DAYS = 366
# By administration and place: the text of `Curve.hours`.
Curves = Mapping[tuple[int, int], str]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One day or hour. Starts and finishes are None where hidden.

    Rates are in percent, and None where the finishes are hidden and for days to come.
    """

    label: str
    started: int | None
    finished: int | None
    rate: float | None
    pace: float | None = None
    day: date | None = None
    is_school_day: bool = True
    is_to_come: bool = False

    @property
    def started_words(self) -> str:
        return self._words(self.started)

    @property
    def finished_words(self) -> str:
        return self._words(self.finished)

    @property
    def rate_words(self) -> str:
        if self.rate is not None:
            return f"{self.rate} %"
        return HIDDEN if self.finished is None else "–"

    def _words(self, people: int | None) -> str:
        if self.is_to_come:
            return "–"
        return HIDDEN if people is None else f"{people:,}"


def with_hidden(
    points: Iterable[CurvePoint], *, hides_starts: bool, hides_finishes: bool
) -> list[CurvePoint]:
    """Hide the starts, or the finishes and rates, of days or hours until now."""
    return [
        point
        if point.is_to_come
        else replace(
            point,
            started=None if hides_starts else point.started,
            finished=None if hides_finishes else point.finished,
            rate=None if hides_finishes else point.rate,
        )
        for point in points
    ]


def curves_of(
    administrations: Iterable[Administration], level: str, places: Iterable[int]
) -> Curves:
    """Return the curves of places of one level. 1 statement."""
    curves = Curve.objects.filter(
        administration__in=administrations, level=level, place_id__in=places
    )
    rows = curves.values_list("administration_id", "place_id", "hours")
    return {(administration, place): hours for administration, place, hours in rows}


def hours_of(text: str | None, *, is_exact: bool) -> list[Hour]:
    """Return the local hours of a curve with a start or finish.

    Unless the reader sees everything, hours of few people are joined.
    """
    zone = timezone.get_current_timezone()
    hours = [
        (datetime.fromtimestamp(hour, zone), started, finished)
        for hour, started, finished in json.loads(text or "[]")
    ]
    return hours if is_exact else join_small_hours(hours)


def last_week(
    text: str | None,
    administration: Administration,
    calendar: SchoolCalendar = MONDAY_TO_FRIDAY,
    *,
    is_exact: bool,
) -> LastWeek | None:
    """Count the finishes of the seven days before today, none before the opening.

    None if there was no school day. Of people who do not see everything, the
    same hours are counted that they see in the chart.
    """
    today = timezone.localdate()
    first = max(today - timedelta(WEEK), timezone.localdate(administration.opens_at))
    days = [first + timedelta(n) for n in range((today - first).days)]
    school_days = sum(map(calendar.is_school_day, days))
    if not school_days:
        return None
    # Without a datetime for each hour: a list has 50 schools.
    hours = json.loads(text or "[]")
    if not is_exact:
        hours = join_small_hours(hours)
    since, until = midnight(first).timestamp(), midnight(today).timestamp()
    finished = sum(number for hour, _, number in hours if since <= hour < until)
    return LastWeek(finished, school_days, is_hidden=not is_exact and not finished)


def midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


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
    if eligible and needed:
        planned = planned_rates(opens, closes, 100 * needed / eligible, calendar)
    days = _sums_by_day(hours)
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
                label=date_format(day, _("D, N j")),
                started=started,
                finished=finished,
                rate=percentage(finished_so_far, eligible) if day <= today else None,
                pace=planned.get(day),
                day=day,
                is_school_day=calendar.is_school_day(day),
                is_to_come=day > today,
            )
        )
    return points


# The box of a sparkline, without units.
SPARKLINE_WIDTH, SPARKLINE_HEIGHT = 100, 30


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The response rate from the opening until now, as a line of an SVG."""

    points: str
    # Height of the threshold in the same box; None if there is none.
    threshold: float | None
    # In percent, seven days ago; None if it had not been open for a day then.
    week_ago: int | None


def sparkline(
    hours: Sequence[Hour], administration: Administration, *, eligible: int, needed: int
) -> Sparkline | None:
    """Draw the rate at the end of each day; None without a rate or a finish."""
    finishes = {day: finished for day, (_, finished) in _sums_by_day(hours).items()}
    if not eligible or not any(finishes.values()):
        return None
    today = timezone.localdate()
    first = min([timezone.localdate(administration.opens_at), *finishes])
    so_far = [0]
    for n in range((today - first).days + 1):
        so_far.append(so_far[-1] + finishes.get(first + timedelta(n), 0))
    # A margin, so that the line at the top is as thick as elsewhere.
    scale = (SPARKLINE_HEIGHT - 2) / max(so_far[-1], needed)
    step = SPARKLINE_WIDTH / (len(so_far) - 1)
    points = (
        f"{n * step:.1f},{SPARKLINE_HEIGHT - 1 - finished * scale:.1f}"
        for n, finished in enumerate(so_far)
    )
    return Sparkline(
        points=" ".join(points),
        threshold=round(SPARKLINE_HEIGHT - 1 - needed * scale, 1) if needed else None,
        week_ago=100 * so_far[-1 - WEEK] // eligible
        if len(so_far) > WEEK + 1
        else None,
    )


def _sums_by_day(hours: Sequence[Hour]) -> dict[date, list[int]]:
    """Return how many started and finished on each day with activity."""
    days: dict[date, list[int]] = {}
    for hour, started, finished in hours:
        sums = days.setdefault(hour.date(), [0, 0])
        sums[0] += started
        sums[1] += finished
    return days


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


def percentage(part: int, whole: int) -> float | None:
    """Return `part` in percent of `whole`, with one decimal.

    Rounded down, by the rule of `rate_lines.percent`.
    """
    return 1000 * part // whole / 10 if whole else None
