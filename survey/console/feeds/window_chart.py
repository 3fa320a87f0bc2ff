"""Count what the last scan window did per minute, and what its stages took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from statistics import median
from typing import NamedTuple

# Bars of the chart at most: a longer window has several minutes to a bar.
MOST_BARS = 120
MINUTE = timedelta(minutes=1)


class Stage(NamedTuple):
    """A stage of one scan that has ended; `pool` are the workers that it kept busy."""

    name: str
    pool: str
    began: datetime
    ended: datetime
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Bar:
    """Some minutes of a window."""

    begins: datetime
    # Scans that ended, per minute.
    scans: float
    # Workers without work, on average, by pool.
    idle: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class StageTimes:
    name: str
    times: int
    seconds: float
    # Of the seconds of all stages.
    share: float
    median_s: float
    longest_s: float
    bytes: int
    rows: int


def count_bars(
    stages: Sequence[Stage],
    scan_ends: Iterable[datetime],
    workers: Mapping[str, int],
) -> list[Bar]:
    """Return bars of equal length from the first stage's start to the last end."""
    ends = list(scan_ends)
    if not stages and not ends:
        return []
    begin = min([*(stage.began for stage in stages), *ends]).replace(
        second=0, microsecond=0
    )
    end = max([*(stage.ended for stage in stages), *ends])
    minutes = max(1, ceil((end - begin) / MINUTE))
    length = ceil(minutes / MOST_BARS) * MINUTE
    count = ceil(minutes * MINUTE / length)
    ended = [0] * count
    for moment in ends:
        ended[min(int((moment - begin) / length), count - 1)] += 1
    busy = {pool: [0.0] * count for pool in workers}
    for stage in stages:
        if stage.pool in busy:
            _add_busy_time(busy[stage.pool], stage, begin, length)
    return [
        Bar(
            begin + n * length,
            ended[n] / (length / MINUTE),
            {
                pool: max(0.0, workers[pool] - seconds[n] / length.total_seconds())
                for pool, seconds in busy.items()
            },
        )
        for n in range(count)
    ]


def _add_busy_time(
    busy: list[float], stage: Stage, begin: datetime, length: timedelta
) -> None:
    """Add the seconds of a stage to each bar that it touches."""
    first = int((stage.began - begin) / length)
    last = min(int((stage.ended - begin) / length), len(busy) - 1)
    for n in range(first, last + 1):
        bar = begin + n * length
        overlap = min(stage.ended, bar + length) - max(stage.began, bar)
        busy[n] += max(0.0, overlap.total_seconds())


def time_stages(stages: Sequence[Stage], names: Iterable[str]) -> list[StageTimes]:
    """Return the times of each stage that ran, in the order of `names`."""
    seconds: dict[str, list[float]] = {}
    for stage in stages:
        took = (stage.ended - stage.began).total_seconds()
        seconds.setdefault(stage.name, []).append(took)
    total = sum(map(sum, seconds.values())) or 1.0
    return [
        StageTimes(
            name,
            len(seconds[name]),
            sum(seconds[name]),
            sum(seconds[name]) / total,
            median(seconds[name]),
            max(seconds[name]),
            sum(stage.bytes for stage in stages if stage.name == name),
            sum(stage.rows for stage in stages if stage.name == name),
        )
        for name in names
        if name in seconds
    ]


def slowest_stage(times: Sequence[StageTimes]) -> StageTimes | None:
    return max(times, key=lambda stage: stage.seconds, default=None)


# The drawing is 1,000 wide and 100 high, and stretched to the page's width.
WIDTH, HEIGHT = 1000, 100


def bars_of(values: Sequence[float]) -> list[tuple[float, float, float, float]]:
    """Return x, y, width and height of the rectangles of a bar chart."""
    most, width = max(values, default=0.0) or 1.0, WIDTH / max(1, len(values))
    # A gap of a tenth between two bars.
    return [
        (
            round((n + 0.05) * width, 2),
            round(HEIGHT * (1 - value / most), 2),
            round(0.9 * width, 2),
            round(HEIGHT * value / most, 2),
        )
        for n, value in enumerate(values)
    ]


def line_of(values: Sequence[float], most: float) -> str:
    """Return the points of a line with a step for each value."""
    width = WIDTH / max(1, len(values))
    points = []
    for n, value in enumerate(values):
        y = HEIGHT * (1 - value / (most or 1.0))
        points += [f"{n * width:.1f},{y:.1f}", f"{(n + 1) * width:.1f},{y:.1f}"]
    return " ".join(points)
