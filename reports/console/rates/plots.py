"""Place the marks of the charts of response rates, in percent of the drawing.

The templates draw them as SVG whose text keeps its size at every width: shapes have
their places in percent, and lines lie in a nested drawing that is stretched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from django.utils.translation import gettext as _

from reports.rates.rate_lines import RateTotal, SchoolRateLine
from reports.rates.time_series import CurvePoint, percentage

# Labels below the columns; two of three are hidden where the page is narrow.
MAX_LABELS = 8


@dataclass(frozen=True, slots=True)
class Column:
    """One day or hour: where it is, and its two bars. All in percent."""

    left: str
    width: str
    middle: str
    started_left: str
    finished_left: str
    bar_width: str
    started_top: str
    started_height: str
    finished_top: str
    finished_height: str
    is_school_day: bool
    tooltip: str


@dataclass(frozen=True, slots=True)
class Label:
    middle: str
    text: str
    # Hidden where the page is narrow.
    is_minor: bool


@dataclass(frozen=True, slots=True)
class CurvePlot:
    """The rate above, and the people of each day or hour below."""

    columns: Sequence[Column]
    labels: Sequence[Label]
    people_top: int
    rate_top: int
    # SVG paths in a square of 100; empty without rates.
    rate_path: str
    pace_path: str
    # Of the last known rate.
    last_rate: int | None
    last_x: str
    last_y: str
    # Its label stands before it, where there is no room behind.
    is_last_at_end: bool

    @property
    def rate_middle(self) -> int:
        return self.rate_top // 2

    @property
    def has_days_off(self) -> bool:
        return not all(column.is_school_day for column in self.columns)


@dataclass(frozen=True, slots=True)
class PlaceBar:
    """A place's finished and started people and its threshold, in percent."""

    name: str
    rate: str
    finished: str
    started: str
    threshold: str
    tooltip: str


def curve_plot(points: Sequence[CurvePoint]) -> CurvePlot | None:
    """Return the chart of days or hours; None if there are none."""
    if not points:
        return None
    width = 100 / len(points)
    people_top = axis_top(
        max(max(point.started or 0, point.finished or 0) for point in points)
    )
    rates = [
        rate
        for point in points
        for rate in (point.rate, point.pace)
        if rate is not None
    ]
    rate_top = rate_axis_top(max(rates)) if rates else 100
    columns = [
        _column(point, place * width, width, people_top)
        for place, point in enumerate(points)
    ]
    step = ceil(len(points) / MAX_LABELS)
    labels = [
        Label(columns[place].middle, points[place].label, bool(number % 3))
        for number, place in enumerate(range(0, len(points), step))
    ]
    past = [place for place, point in enumerate(points) if point.rate is not None]
    last = past[-1] if past else None
    last_rate = None if last is None else points[last].rate
    last_x = (last + 0.5) * width if last is not None else 0.0
    return CurvePlot(
        columns,
        labels,
        people_top,
        rate_top,
        rate_path=_path([point.rate for point in points], rate_top),
        pace_path=_path([point.pace for point in points], rate_top),
        # Rounded down, as everywhere.
        last_rate=None if last_rate is None else floor(last_rate),
        last_x=_percent(last_x) if last is not None else "",
        is_last_at_end=last_x > 80,
        last_y="" if last_rate is None else _percent(100 - 100 * last_rate / rate_top),
    )


def place_bars(
    lines: Sequence[RateTotal] | Sequence[SchoolRateLine],
) -> list[PlaceBar]:
    """Return a bar for each place whose numbers may be shown and that has people."""
    shares = []
    for line in lines:
        # Hidden schools have no bar, and those without people no rate.
        if line.finished is None or line.started is None or not line.eligible:
            continue
        finished = percentage(line.finished, line.eligible) or 0.0
        started = percentage(line.started - line.finished, line.eligible) or 0.0
        threshold = percentage(line.drawn_threshold or 0, line.eligible)
        shares.append((line, finished, started, threshold))
    # Above 100 where more people answered than a school had counted.
    scale = 100 / max(
        [100.0, *(finished + started for _, finished, started, _ in shares)]
    )
    return [
        PlaceBar(
            line.name,
            line.rate_words,
            _percent(finished * scale),
            _percent(started * scale),
            _percent(threshold * scale) if threshold else "",
            _("%(finished)s %% finished, %(started)s %% started and not finished")
            % {"finished": finished, "started": started},
        )
        for line, finished, started, threshold in shares
    ]


def axis_top(most: int) -> int:
    """Return the end of an axis of counts: 1, 2 or 5 times a power of ten."""
    if most <= 5:
        return max(most, 1)
    power = 10 ** floor(log10(most))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= most)


def rate_axis_top(most: float) -> int:
    """Return the next ten above the highest rate; 100 holds 100 %."""
    above = floor(most / 10) * 10 + 10
    return above if most > 100 else min(above, 100)


def _column(point: CurvePoint, left: float, width: float, top: int) -> Column:
    started = 100 * (point.started or 0) / top
    finished = 100 * (point.finished or 0) / top
    words = _("%(label)s: %(started)s started, %(finished)s finished") % {
        "label": point.label,
        "started": point.started_words,
        "finished": point.finished_words,
    }
    if point.rate is not None:
        words = f"{words}, {floor(point.rate)} %"
    return Column(
        left=_percent(left),
        width=_percent(width),
        middle=_percent(left + width / 2),
        started_left=_percent(left + 0.14 * width),
        finished_left=_percent(left + 0.52 * width),
        bar_width=_percent(0.34 * width),
        started_top=_percent(100 - started),
        started_height=_percent(started),
        finished_top=_percent(100 - finished),
        finished_height=_percent(finished),
        is_school_day=point.is_school_day,
        tooltip=words,
    )


def _path(rates: Sequence[float | None], top: int) -> str:
    """Draw a line through the middles of the columns, with gaps at None."""
    width, commands, is_drawing = 100 / len(rates), [], False
    for place, rate in enumerate(rates):
        if rate is None:
            is_drawing = False
            continue
        x, y = (place + 0.5) * width, 100 - 100 * rate / top
        commands.append(f"{'L' if is_drawing else 'M'}{x:.2f} {y:.2f}")
        is_drawing = True
    return "".join(commands)


def _percent(share: float) -> str:
    return f"{share:.2f}%"
