"""Calibrate one measure, alone or anchored to the thresholds of an earlier wave.

Numbers in, numbers out: categories are counted from 0 in the direction of the measure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reports.rasch import (
    Calibration,
    ResponseTable,
    fit_statistics,
    measure_people,
    separation,
)
from reports.rasch.fit import Fit
from reports.rasch.responses import Floats
from reports.scores.displacement import Displacement, displacements_of, linking_error
from reports.scores.estimation import (
    FEWEST_ITEMS,
    columns_of,
    estimate,
    place_covariance,
    usable_items,
)
from reports.scores.joining import Anchor, join_options, joined_problems
from reports.scores.problems import Kind, Problem


@dataclass
class ItemResult:
    """One item of a calibration. Thresholds are between neighbouring categories."""

    name: str
    # The values of its options, from low to high, and the category of each.
    options: list[str]
    option_categories: list[int]
    thresholds: list[float]
    standard_errors: list[float]
    infit: float | None
    outfit: float | None
    people: int
    is_anchored: bool = False
    # In logits, with its standard error, and whether it is more than chance.
    displacement: float | None = None
    displacement_error: float | None = None
    has_drifted: bool = False
    # Of its place with that of each item, if it is not anchored.
    covariances: dict[str, float] = field(default_factory=dict)


@dataclass
class MeasureResult:
    """A calibration, and the measure of each row of the table: NaN without one."""

    measures: Floats
    items: list[ItemResult] = field(default_factory=list)
    reliability: float | None = None
    separation: float | None = None
    linking_error: float | None = None
    problems: list[Problem] = field(default_factory=list)


def calibrate_measure(
    table: ResponseTable,
    names: Sequence[str],
    options: Mapping[str, Sequence[str]],
    *,
    anchors: Mapping[str, Anchor],
    released: Collection[str] = (),
    fewest_answers: int = FEWEST_ITEMS,
) -> MeasureResult:
    """Estimate thresholds by conditional likelihood, and measures by Warm's estimator.

    Options that hardly anybody chose are joined with their neighbours, in anchored
    items as in the benchmark. Items that cannot be estimated are left out; without two
    others there is no measure. Anchored items keep their thresholds, except those that
    are released. The displacements of both are computed. `options` are values from low
    to high. People with fewer than `fewest_answers` have no measure, and those with
    one have no part in fit and reliability, of which it tells nothing.
    """
    fixed = [name for name in names if name in anchors and name not in released]
    joined, table = join_options(table, names, options, anchors, fixed)
    item_problems, usable = usable_items(table, names, fixed)
    result = MeasureResult(np.full(len(table.people), np.nan), problems=item_problems)
    result.problems += joined_problems(options, joined, usable)
    fixed = [name for name in fixed if name in usable]
    if len(usable) < FEWEST_ITEMS:
        result.problems.append(Problem(Kind.TOO_FEW_ITEMS))
        return result
    chosen = columns_of(table, [names.index(name) for name in usable])
    calibration = estimate(
        chosen, {usable.index(name): anchors[name].thresholds for name in fixed}
    )
    if calibration is None:
        result.problems.append(Problem(Kind.NO_ESTIMATE))
        return result
    fit = _measure_people(result, chosen, calibration, fewest_answers)
    compared = {
        name: anchor
        for name, anchor in anchors.items()
        if joined.get(name) == anchor.categories
    }
    drift = displacements_of(table, names, usable, compared, fixed)
    result.linking_error = linking_error(drift, fixed)
    result.items = _item_results(
        *(chosen, calibration, fit, usable), options, joined, drift, fixed
    )
    result.problems += [
        Problem(Kind.DRIFT, item=item.name, logits=item.displacement)
        for item in result.items
        if item.has_drifted
    ]
    return result


def _item_results(
    table: ResponseTable,
    calibration: Calibration,
    fit: Fit,
    usable: Sequence[str],
    options: Mapping[str, Sequence[str]],
    joined: Mapping[str, Sequence[int]],
    drift: Mapping[str, Displacement],
    fixed: Collection[str],
) -> list[ItemResult]:
    """Return what to store of each item; `table` has those that are usable."""
    items = []
    places = place_covariance(calibration)
    for item, name in enumerate(usable):
        of_item = ItemResult(
            name,
            *(list(options[name]), list(joined[name])),
            calibration.thresholds[item].tolist(),
            calibration.standard_errors[item].tolist(),
            *(_finite(fit.infit[item]), _finite(fit.outfit[item])),
            int(table.people[table.answered[:, item]].sum()),
            is_anchored=name in fixed,
        )
        if not of_item.is_anchored:
            of_item.covariances = dict(zip(usable, places[item].tolist(), strict=True))
        if moved := drift.get(name):
            of_item.displacement = moved.logits
            of_item.displacement_error = moved.error
            of_item.has_drifted = of_item.is_anchored and moved.has_drifted
        items.append(of_item)
    return items


def _measure_people(
    result: MeasureResult,
    table: ResponseTable,
    calibration: Calibration,
    fewest_answers: int,
) -> Fit:
    """Add the people's measures and how exact they are; return the fit of the items."""
    people = measure_people(table, calibration.thresholds)
    answers = table.answered.sum(axis=1)
    result.measures = np.where(answers >= fewest_answers, people.wle, np.nan)
    judged = answers >= max(fewest_answers, FEWEST_ITEMS)
    table, people = table.rows(judged), people.rows(judged)
    precision = separation(table, people)
    result.reliability = _finite(precision.reliability)
    result.separation = _finite(precision.separation)
    return fit_statistics(table, calibration.thresholds, people)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
