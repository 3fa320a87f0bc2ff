"""Test whether anchored items have drifted, and how much that leaves of a trend.

Numbers in, numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from reports.rasch import ResponseTable, examine
from reports.rasch.responses import Floats
from reports.scores.comparisons import significant
from reports.scores.estimation import (
    FEWEST_ITEMS,
    columns_of,
    estimate,
    place_covariance,
)
from reports.scores.joining import Anchor

# In logits. A smaller displacement changes no score that matters, however sure it is.
LEAST_DRIFT = 0.5


class Displacement(NamedTuple):
    """How far an item has moved, in logits, and the standard error of that."""

    logits: float
    error: float
    has_drifted: bool


def displacements_of(
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
    calibration = estimate(columns_of(table, [names.index(name) for name in free]))
    if calibration is None:
        return {}
    of_compared = [free[item] for item in compared]
    moved = [
        np.mean(calibration.thresholds[item] - anchors[free[item]].thresholds)
        for item in compared
    ]
    now = place_covariance(calibration)[np.ix_(compared, compared)]
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


def displaced(
    moved: Floats, covariance: Floats, held: Sequence[int]
) -> list[Displacement]:
    """Test the displacements of a measure's items together.

    `moved` are the differences of two calibrations, of which `covariance` holds the
    errors. The mean of the anchored items, `held`, is removed. An item has drifted if
    it is displaced by 0.5 logits, and by more than chance as Benjamini and Hochberg
    (1995) test the anchored items of a measure, at 5 %.
    """
    size = len(moved)
    centering = np.eye(size)
    centering[:, list(held)] -= 1 / len(held)
    logits = centering @ moved
    variances = np.diag(centering @ covariance @ centering.T)
    errors = np.sqrt(np.clip(variances, 0, None))
    chances = [
        math.erfc(abs(value) / error / math.sqrt(2)) if error else 1.0
        for value, error in zip(logits.tolist(), errors.tolist(), strict=True)
    ]
    moved_items = significant({place: chances[place] for place in held})
    return [
        Displacement(
            float(value),
            float(error),
            place in moved_items and bool(abs(value) >= LEAST_DRIFT),
        )
        for place, (value, error) in enumerate(zip(logits, errors, strict=True))
    ]


def linking_error(
    displacements: Mapping[str, Displacement], anchored: Collection[str]
) -> float | None:
    """Return the standard error of a wave's place on the benchmark's scale, in logits.

    It is that of the mean of the anchored items' displacements, as if they were a
    sample of items (Michaelides 2010); None of fewer than two.
    """
    moved = [
        displacement.logits
        for name, displacement in displacements.items()
        if name in anchored
    ]
    count = len(moved)
    if count < 2:
        return None
    return math.sqrt(math.fsum(value**2 for value in moved) / (count * (count - 1)))
