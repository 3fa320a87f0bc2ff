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
from reports.rasch.responses import Floats, Integers
from reports.scores.problems import MOST_DISPLACEMENT, Kind, Problem

# One item alone has no scale.
FEWEST_ITEMS = 2
KINDS = {
    problems.UNANSWERED: Kind.UNANSWERED,
    problems.ONE_CATEGORY: Kind.ONE_CATEGORY,
    problems.DISCONNECTED: Kind.DISCONNECTED,
}


class Anchor(NamedTuple):
    """An item's used categories and the thresholds between them, in the benchmark."""

    categories: tuple[int, ...]
    thresholds: tuple[float, ...]


@dataclass
class ItemResult:
    """One item of a calibration. Thresholds are between neighbouring `categories`."""

    name: str
    # The values of its options, from low to high.
    options: list[str]
    categories: list[int]
    thresholds: list[float]
    standard_errors: list[float]
    infit: float | None
    outfit: float | None
    people: int
    is_anchored: bool = False
    displacement: float | None = None


@dataclass
class MeasureResult:
    """A calibration, and the measure of each row of the table: NaN without one."""

    measures: Floats
    items: list[ItemResult] = field(default_factory=list)
    reliability: float | None = None
    separation: float | None = None
    problems: list[Problem] = field(default_factory=list)


def calibrate_measure(
    table: ResponseTable,
    names: Sequence[str],
    options: Mapping[str, Sequence[str]],
    *,
    anchors: Mapping[str, Anchor],
    released: Collection[str] = (),
) -> MeasureResult:
    """Estimate thresholds by conditional likelihood, and measures by Warm's estimator.

    Items that cannot be estimated are left out; without two others there is no
    measure. Anchored items keep their thresholds, except those that are released. The
    displacements of both are computed. `options` are values from low to high.
    """
    item_problems, usable = _usable(
        table, names, options, anchors.keys() - set(released)
    )
    result = MeasureResult(np.full(len(table.people), np.nan), problems=item_problems)
    fixed = [name for name in usable if name in anchors and name not in released]
    if len(usable) < FEWEST_ITEMS:
        result.problems.append(Problem(Kind.TOO_FEW_ITEMS))
        return result
    chosen, used = _chosen_table(table, names, usable, anchors, fixed)
    held = {usable.index(name): anchors[name].thresholds for name in fixed}
    calibration = _estimate(chosen, held)
    if calibration is None:
        result.problems.append(Problem(Kind.NO_ESTIMATE))
        return result
    people = measure_people(chosen, calibration.thresholds)
    result.measures = people.wle
    fit = fit_statistics(chosen, calibration.thresholds, people)
    precision = separation(chosen, people)
    result.reliability = _finite(precision.reliability)
    result.separation = _finite(precision.separation)
    displacements = _displacements(table, names, usable, anchors, fixed)
    for item, name in enumerate(usable):
        result.items.append(
            ItemResult(
                name,
                list(options[name]),
                used[item].tolist(),
                calibration.thresholds[item].tolist(),
                calibration.standard_errors[item].tolist(),
                _finite(fit.infit[item]),
                _finite(fit.outfit[item]),
                int(chosen.people[chosen.answered[:, item]].sum()),
                is_anchored=name in fixed,
                displacement=displacements.get(name),
            )
        )
        drift = displacements.get(name)
        if name in fixed and drift is not None and abs(drift) > MOST_DISPLACEMENT:
            result.problems.append(Problem(Kind.DRIFT, item=name, logits=drift))
    return result


def _chosen_table(
    table: ResponseTable,
    names: Sequence[str],
    usable: Sequence[str],
    anchors: Mapping[str, Anchor],
    fixed: Collection[str],
) -> tuple[ResponseTable, list[Integers]]:
    """Return the table of usable items, and the categories of each that have people.

    Those are numbered from 0 in the table. Anchored items have all of the anchor's.
    """
    positions = [names.index(name) for name in usable]
    chosen = ResponseTable(table.categories[:, positions], table.people)
    used = [
        np.array(anchors[name].categories)
        if name in fixed
        else np.flatnonzero(chosen.category_counts(item))
        for item, name in enumerate(usable)
    ]
    categories = chosen.categories.copy()
    for item, numbers in enumerate(used):
        answered = chosen.answered[:, item]
        categories[answered, item] = np.searchsorted(
            numbers, chosen.categories[answered, item]
        )
    return ResponseTable(categories, table.people), used


def _usable(
    table: ResponseTable,
    names: Sequence[str],
    options: Mapping[str, Sequence[str]],
    fixed: Collection[str],
) -> tuple[list[Problem], list[str]]:
    """Return the problems of the items, and the items that can be used."""
    item_problems, excluded = [], {}
    for problem in examine(table):
        name = names[problem.item]
        if problem.category is not None:
            value = options[name][problem.category]
            item_problems.append(Problem(Kind.UNUSED_CATEGORY, item=name, value=value))
        elif name not in fixed or problem.kind == problems.UNANSWERED:
            excluded[name] = KINDS[problem.kind]
        elif problem.kind == problems.DISCONNECTED:
            # Its thresholds are known, but which of the others it links is not.
            for item in names:
                if item not in fixed:
                    excluded.setdefault(item, Kind.DISCONNECTED)
    item_problems += [Problem(kind, item=name) for name, kind in excluded.items()]
    return item_problems, [name for name in names if name not in excluded]


def _estimate(
    table: ResponseTable, anchors: Mapping[int, Sequence[float]] | None = None
) -> Calibration | None:
    try:
        calibration = calibrate(table, anchors=anchors)
    except np.linalg.LinAlgError:
        return None
    return calibration if calibration.is_converged else None


def _displacements(
    table: ResponseTable,
    names: Sequence[str],
    usable: Sequence[str],
    anchors: Mapping[str, Anchor],
    fixed: Sequence[str],
) -> dict[str, float]:
    """Return how far items are from their anchors when nothing is anchored.

    The mean shift of the anchored items is removed, because people may have changed.
    Only items with the same used categories as in the benchmark have one.
    """
    if not fixed:
        return {}
    without_answers = {
        names[problem.item] for problem in examine(table) if problem.excludes
    }
    free = [name for name in usable if name not in without_answers]
    if len(free) < FEWEST_ITEMS:
        return {}
    positions = [names.index(name) for name in free]
    chosen, used = ResponseTable(
        table.categories[:, positions], table.people
    ).without_unused_categories()
    calibration = _estimate(chosen)
    if calibration is None:
        return {}
    moved = {
        name: float(np.mean(calibration.thresholds[item] - anchors[name].thresholds))
        for item, name in enumerate(free)
        if name in anchors and tuple(used[item].tolist()) == anchors[name].categories
    }
    anchored = [moved[name] for name in fixed if name in moved]
    if not anchored:
        return {}
    shift = float(np.mean(anchored))
    return {name: value - shift for name, value in moved.items()}


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
