"""Make the rows of the tables about the people: who answered, how, and what it does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from accounts.http import Cell
from reports.scores.scale import POINTS
from reports.suppression import HIDDEN
from reports.technical.diagnostics import MeasureDiagnostics
from reports.technical.estimates import (
    Raked,
    clustered_error,
    mean_error,
    wilson_interval,
)
from reports.technical.source import TechnicalSource
from reports.technical.tables import Row, diagnosed, rounded


def tables_of_people(source: TechnicalSource) -> Mapping[str, Iterator[Row]]:
    """Return the rows of each file, with a header first."""
    makers: Sequence[Callable[[TechnicalSource], Iterator[Row]]] = (
        *(response, careless, errors, pairs, effects),
    )
    return {maker.__name__: maker(source) for maker in makers}


def response(source: TechnicalSource) -> Iterator[Row]:
    """The roster by group, and how like it the people are who started."""
    yield (
        *("attribute", "value", "on the roster", "started", "finished"),
        *("percent finished", "from", "to"),
        *("percent of the roster", "percent of those who started"),
    )
    minimum = source.administration.minimum_group
    totals = {group.attribute: [0, 0] for group in source.roster}
    for group in source.roster:
        totals[group.attribute][0] += group.eligible
        totals[group.attribute][1] += group.started
    for group in source.roster:
        if group.eligible < minimum:
            continue
        eligible, started = totals[group.attribute]
        low, high = wilson_interval(group.finished, group.eligible)
        shown = min(group.finished, group.started) >= minimum
        figures: list[Cell] = [
            *(group.started, group.finished),
            *map(_percent, (group.finished / group.eligible, low, high)),
        ]
        of_started = _percent(group.started / started if started else None)
        yield [
            *(group.attribute or "everyone", group.value, group.eligible),
            *(figures if shown else [HIDDEN] * len(figures)),
            _percent(group.eligible / eligible),
            of_started if shown else HIDDEN,
        ]


def careless(source: TechnicalSource) -> Iterator[Row]:
    yield "rule", "judged people", "flagged people", "percent", "from", "to"
    minimum = source.administration.minimum_group
    for rule, flags in (*source.careless.items(), ("either", source.all_flags)):
        judged, flagged = int(flags.is_judged.sum()), int(flags.is_flagged.sum())
        if judged < minimum:
            yield [rule, f"<{minimum}", *[HIDDEN] * 4]
        elif 0 < flagged < minimum:
            yield [rule, judged, f"<{minimum}", *[HIDDEN] * 3]
        else:
            shares = (flagged / judged, *wilson_interval(flagged, judged))
            yield [rule, judged, flagged, *map(_percent, shares)]


def errors(source: TechnicalSource) -> Iterator[Row]:
    """Of the mean of everyone; people of a school are more alike than others."""
    yield (
        *("measure", "standard deviation", "standard error of independent people"),
        *("standard error of people in schools", "design effect"),
    )
    for measure, diagnostics, _ in diagnosed(source):
        measured = diagnostics.measured
        error = mean_error(measured)
        clustered = clustered_error(measured, source.schools)
        deviation = float(np.nanstd(measured, ddof=1))
        effect = (clustered / error) ** 2 if error else None
        yield [measure, *map(rounded, (deviation, error, clustered, effect))]


def pairs(source: TechnicalSource) -> Iterator[Row]:
    """Of differences of two means, in points of the scale, of the same people."""
    yield (
        *("measure", "other measure", "standard error of other people"),
        *("standard error of the same people", "of the same people in schools"),
    )
    in_points = {}
    for measure, diagnostics, _ in diagnosed(source):
        calibration = source.calibrations[measure]
        if calibration and calibration.scale_deviation:
            points = POINTS / calibration.scale_deviation
            in_points[measure] = diagnostics.measured * points
    for first, second in combinations(in_points, 2):
        difference = in_points[first] - in_points[second]
        independent = math.hypot(
            *(mean_error(in_points[measure]) for measure in (first, second))
        )
        clustered = clustered_error(difference, source.schools)
        figures = (independent, mean_error(difference), clustered)
        yield [first, second, *(rounded(figure, 3) for figure in figures)]


def effects(source: TechnicalSource) -> Iterator[Row]:
    """What careless people, and those who did not answer, may have changed."""
    yield (
        *("measure", "people", "change of the mean", "change in points"),
        *("standard error of people in schools", "reliability"),
        *("smallest weight", "largest weight", "trimmed", "design effect"),
        *("distance from the roster", "like the roster by"),
    )
    for measure, diagnostics, _ in diagnosed(source):
        yield _without_careless(source, measure, diagnostics)
        if source.weights:
            yield _weighted(source, measure, diagnostics, *source.weights)


def _without_careless(
    source: TechnicalSource, measure: str, diagnostics: MeasureDiagnostics
) -> Row:
    measured = diagnostics.measured
    is_left_out = source.all_flags.is_flagged & np.isfinite(measured)
    if 0 < is_left_out.sum() < source.administration.minimum_group:
        return [measure, "without careless answers", *[HIDDEN] * 4, *[None] * 6]
    rest = np.where(is_left_out, np.nan, measured)
    return [
        *(measure, "without careless answers"),
        *_change(source, measure, float(np.nanmean(rest) - np.nanmean(measured))),
        rounded(clustered_error(rest, source.schools)),
        rounded(diagnostics.reliability(~is_left_out)),
        *[None] * 6,
    ]


def _weighted(
    source: TechnicalSource,
    measure: str,
    diagnostics: MeasureDiagnostics,
    raked: Raked,
    attributes: Sequence[str],
) -> Row:
    known = np.isfinite(diagnostics.measured)
    measured, weights = diagnostics.measured[known], raked.weights[known]
    change = float(np.average(measured, weights=weights) - measured.mean())
    return [
        *(measure, "weighted to the roster"),
        *_change(source, measure, change),
        rounded(clustered_error(diagnostics.measured, source.schools, raked.weights)),
        None,
        *map(rounded, (float(weights.min()), float(weights.max()))),
        *(raked.trimmed, rounded(raked.design_effect)),
        *(rounded(raked.distance), " ".join(attributes)),
    ]


def _change(source: TechnicalSource, measure: str, logits: float) -> list[Cell]:
    """Return a change of the mean in logits, and in points if there is a scale."""
    calibration = source.calibrations[measure]
    deviation = calibration.scale_deviation if calibration else None
    points = POINTS * logits / deviation if deviation else None
    return [rounded(logits, 3), rounded(points, 1)]


def _percent(share: float | None) -> float | None:
    return None if share is None else rounded(100 * share, 1)
