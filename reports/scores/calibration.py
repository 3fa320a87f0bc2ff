"""Calibrate one measure, alone or anchored to the thresholds of an earlier wave.

Numbers in, numbers out: categories are counted from 0 in the direction of the measure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from reports.rasch import (
    MISSING,
    Calibration,
    ResponseTable,
    calibrate,
    examine,
    fit_statistics,
    measure_people,
    problems,
    separation,
)
from reports.rasch.categories import joined_categories
from reports.rasch.responses import Floats, Integers
from reports.scores.displacement import Displacement, displaced, linking_error
from reports.scores.problems import Kind, Problem

# One item alone has no scale.
FEWEST_ITEMS = 2
KINDS = {
    problems.UNANSWERED: Kind.UNANSWERED,
    problems.ONE_CATEGORY: Kind.ONE_CATEGORY,
    problems.DISCONNECTED: Kind.DISCONNECTED,
}


class Anchor(NamedTuple):
    """An item of the benchmark.

    Its category of each option, the thresholds between them, and the covariances of
    its place with those of all items, by name; empty in older calibrations.
    """

    categories: tuple[int, ...]
    thresholds: tuple[float, ...]
    covariances: Mapping[str, float]


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
    joined, table = _join_options(table, names, options, anchors, fixed)
    item_problems, usable = _usable(table, names, fixed)
    result = MeasureResult(np.full(len(table.people), np.nan), problems=item_problems)
    result.problems += _joined_problems(options, joined, usable)
    fixed = [name for name in fixed if name in usable]
    if len(usable) < FEWEST_ITEMS:
        result.problems.append(Problem(Kind.TOO_FEW_ITEMS))
        return result
    chosen = _columns(table, [names.index(name) for name in usable])
    calibration = _estimate(
        chosen, {usable.index(name): anchors[name].thresholds for name in fixed}
    )
    if calibration is None:
        result.problems.append(Problem(Kind.NO_ESTIMATE))
        return result
    thresholds = calibration.thresholds
    people = measure_people(chosen, thresholds)
    answers = chosen.answered.sum(axis=1)
    result.measures = np.where(answers >= fewest_answers, people.wle, np.nan)
    judged = answers >= max(fewest_answers, FEWEST_ITEMS)
    chosen_judged, people = chosen.rows(judged), people.rows(judged)
    fit = fit_statistics(chosen_judged, thresholds, people)
    precision = separation(chosen_judged, people)
    result.reliability = _finite(precision.reliability)
    result.separation = _finite(precision.separation)
    compared = {
        name: anchor
        for name, anchor in anchors.items()
        if joined.get(name) == anchor.categories
    }
    drift = _displacements(table, names, usable, compared, fixed)
    result.linking_error = linking_error(drift, fixed)
    places = _place_covariance(calibration)
    for item, name in enumerate(usable):
        moved = drift.get(name)
        is_anchored = name in fixed
        result.items.append(
            ItemResult(
                name,
                list(options[name]),
                list(joined[name]),
                thresholds[item].tolist(),
                calibration.standard_errors[item].tolist(),
                _finite(fit.infit[item]),
                _finite(fit.outfit[item]),
                int(chosen.people[chosen.answered[:, item]].sum()),
                is_anchored=is_anchored,
                displacement=moved.logits if moved else None,
                displacement_error=moved.error if moved else None,
                has_drifted=is_anchored and bool(moved and moved.has_drifted),
                covariances={}
                if is_anchored
                else dict(zip(usable, places[item].tolist(), strict=True)),
            )
        )
        if moved and result.items[-1].has_drifted:
            result.problems.append(Problem(Kind.DRIFT, item=name, logits=moved.logits))
    return result


def _join_options(
    table: ResponseTable,
    names: Sequence[str],
    options: Mapping[str, Sequence[str]],
    anchors: Mapping[str, Anchor],
    fixed: Collection[str],
) -> tuple[dict[str, tuple[int, ...]], ResponseTable]:
    """Return the category of each option of each item, and the table of these.

    Those of the benchmark's items are the benchmark's, so that both can be compared;
    but in a released item, each needs people of its own.
    """
    joined, categories = {}, table.categories.copy()
    for item, name in enumerate(names):
        counts = table.category_counts(item, len(options[name]))
        anchor = anchors.get(name)
        is_compared = anchor and (
            name in fixed or np.bincount(anchor.categories, weights=counts).all()
        )
        joined[name] = (
            anchor.categories
            if anchor and is_compared
            else joined_categories(counts.tolist())
        )
        answered = table.answered[:, item]
        lookup = np.array(joined[name], dtype=categories.dtype)
        categories[answered, item] = lookup[table.categories[answered, item]]
    return joined, ResponseTable(categories, table.people)


def _joined_problems(
    options: Mapping[str, Sequence[str]],
    joined: Mapping[str, Sequence[int]],
    usable: Sequence[str],
) -> list[Problem]:
    """Name the items with joined options, and which these are."""
    item_problems = []
    for name in usable:
        of_category: dict[int, list[str]] = {}
        for value, category in zip(options[name], joined[name], strict=True):
            of_category.setdefault(category, []).append(value)
        several = [values for values in of_category.values() if len(values) > 1]
        if several:
            words = "; ".join(", ".join(values) for values in several)
            item_problems.append(Problem(Kind.JOINED, item=name, value=words))
    return item_problems


def _usable(
    table: ResponseTable, names: Sequence[str], fixed: Collection[str]
) -> tuple[list[Problem], list[str]]:
    """Return the problems of the items, and the items that can be used."""
    excluded: dict[str, Kind] = {}
    for problem in examine(table):
        name = names[problem.item]
        if not problem.excludes:
            continue
        if name not in fixed or problem.kind == problems.UNANSWERED:
            excluded[name] = KINDS[problem.kind]
        elif problem.kind == problems.DISCONNECTED:
            # Its thresholds are known, but which of the others it links is not.
            for item in names:
                if item not in fixed:
                    excluded.setdefault(item, Kind.DISCONNECTED)
    item_problems = [Problem(kind, item=name) for name, kind in excluded.items()]
    return item_problems, [name for name in names if name not in excluded]


def _columns(table: ResponseTable, items: Sequence[int]) -> ResponseTable:
    """Return the table of these items; rows stay as they are."""
    return ResponseTable(table.categories[:, list(items)], table.people)


def _estimate(
    table: ResponseTable, anchors: Mapping[int, Sequence[float]] | None = None
) -> Calibration | None:
    try:
        calibration = calibrate(table, anchors=anchors)
    except np.linalg.LinAlgError:
        return None
    return calibration if calibration.is_converged else None


def _place_covariance(calibration: Calibration) -> Floats:
    """Return the covariance of items' places: the means of their thresholds."""
    steps = [len(thresholds) for thresholds in calibration.thresholds]
    mean = np.zeros((len(steps), sum(steps)))
    for item, end in enumerate(np.cumsum(steps)):
        mean[item, end - steps[item] : end] = 1 / steps[item]
    covariance: Floats = mean @ calibration.covariance @ mean.T
    return covariance


def _displacements(
    table: ResponseTable,
    names: Sequence[str],
    usable: Sequence[str],
    anchors: Mapping[str, Anchor],
    fixed: Collection[str],
) -> dict[str, Displacement]:
    """Return how far items are from their anchors when nothing is anchored.

    The mean shift of the anchored items is removed, because people may have changed.
    Only items of the benchmark have one, if there are people in all of its categories.
    """
    without_answers = {names[problem.item] for problem in examine(table)}
    free = [
        name
        for name in usable
        if name not in without_answers
        and (name not in anchors or _has_all_categories(table, names, anchors, name))
    ]
    compared = [item for item, name in enumerate(free) if name in anchors]
    held = [place for place, item in enumerate(compared) if free[item] in fixed]
    if len(free) < FEWEST_ITEMS or not held:
        return {}
    calibration = _estimate(_columns(table, [names.index(name) for name in free]))
    if calibration is None:
        return {}
    of_compared = [free[item] for item in compared]
    moved = [
        np.mean(calibration.thresholds[item] - anchors[free[item]].thresholds)
        for item in compared
    ]
    now = _place_covariance(calibration)[np.ix_(compared, compared)]
    before = [
        [anchors[name].covariances.get(item, 0.0) for item in of_compared]
        for name in of_compared
    ]
    of_items = displaced(np.array(moved), now + np.array(before), held)
    return dict(zip(of_compared, of_items, strict=True))


def _has_all_categories(
    table: ResponseTable, names: Sequence[str], anchors: Mapping[str, Anchor], name: str
) -> bool:
    categories = len(anchors[name].thresholds) + 1
    counts = table.category_counts(names.index(name), categories)
    return bool(counts.all())


def table_of(columns: Sequence[Integers]) -> tuple[ResponseTable, Integers]:
    """Return the table of people's categories, and the row of each person.

    Much faster than `ResponseTable.of_people` for millions of people.
    """
    combined = np.zeros(len(columns[0]), dtype=np.int64)
    size = 1
    for column in columns:
        base = int(column.max(initial=MISSING)) - MISSING + 1
        # Numbers that would not fit are replaced by their places.
        if size * base >= 2**62:
            _, combined = np.unique(combined, return_inverse=True)
            size = int(combined.max(initial=0)) + 1
        combined = combined * base + (column - MISSING)
        size *= base
    _, firsts, row, people = np.unique(
        combined, return_index=True, return_inverse=True, return_counts=True
    )
    categories = np.column_stack([column[firsts] for column in columns])
    return ResponseTable(categories, people), row


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
