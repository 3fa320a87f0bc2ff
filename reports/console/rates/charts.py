"""Make the charts of the rates pages, from figures that may be shown."""

from __future__ import annotations

from collections.abc import Sequence

from accounts.http import StaffRequest
from reports.console.rates.plots import curve_plot
from reports.rates import time_series
from reports.rates.rate_lines import RateTotal, SchoolRateLine, is_open
from reports.suppression.rates import SMALLEST_HOUR
from survey.models import Administration


def curve_context(
    request: StaffRequest,
    administration: Administration,
    level: str,
    place: int,
    figures: RateTotal | SchoolRateLine | None,
    *,
    sees_all: bool,
    curves: time_series.Curves | None = None,
) -> dict[str, object]:
    """Return the chart by day and by hour, if the figures may be shown.

    Unless the user `sees_all`, hours of few people are joined. 1 statement, or none
    if the `curves` were read already.
    """
    # Summing the hours would give a hidden number away.
    if figures is None or figures.finished is None:
        return {"days": None}
    eligible, needed = figures.eligible, figures.drawn_threshold
    if isinstance(figures, RateTotal) and figures.without_count:
        # The hours are those of all schools, also of some without a number.
        eligible = 0
    if not figures.started and not (eligible and is_open(administration)):
        return {"days": None}
    if curves is None:
        curves = time_series.curves_of([administration], level, [place])
    text = curves.get((administration.pk, place))
    hours = time_series.hours_of(text, is_exact=sees_all)
    # All of them wait for a later day: nobody on each day would contradict their sum.
    hides_starts = bool(figures.started) and not any(hour[1] for hour in hours)
    hides_finishes = bool(figures.finished) and not any(hour[2] for hour in hours)
    if not sees_all and hides_starts and (hides_finishes or not figures.finished):
        return {"days": None, "waiting_hour": SMALLEST_HOUR}
    days = time_series.by_day(
        hours,
        administration,
        eligible=eligible,
        needed=needed,
        calendar=figures.calendar,
    )
    requested = request.GET.get("day", "")
    day = time_series.day_to_show(hours, requested)
    of_day = time_series.by_hour(hours, day, eligible=eligible) if day else []
    if not sees_all:
        days, of_day = (
            time_series.with_hidden(
                points, hides_starts=hides_starts, hides_finishes=hides_finishes
            )
            for points in (days, of_day)
        )
    return {
        **_days_context(days, eligible=eligible),
        "days_figures": figures,
        "smallest_hour": None if sees_all else SMALLEST_HOUR,
        "hides_finishes": hides_finishes and not sees_all,
        "active_days": {hour.date() for hour, *_ in hours},
        "day": day,
        "day_is_requested": day is not None and requested == day.isoformat(),
        "hours": of_day,
        "hours_plot": curve_plot(of_day),
    }


def _days_context(
    days: Sequence[time_series.CurvePoint], *, eligible: int
) -> dict[str, object]:
    past = [point for point in days if not point.is_to_come]
    return {
        "days": days,
        "days_eligible": eligible,
        "days_past": past[-1] if eligible and past else None,
        "days_have_pace": any(point.pace is not None for point in days),
        "days_have_off": any(not point.is_school_day for point in days),
        "days_plot": curve_plot(days),
    }
