"""Estimate the thresholds of the items that can be used, with their errors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from reports.rasch import Calibration, ResponseTable, calibrate, examine, problems
from reports.rasch.responses import Floats
from reports.scores.problems import Kind, Problem

# One item alone has no scale.
FEWEST_ITEMS = 2
KINDS = {
    problems.UNANSWERED: Kind.UNANSWERED,
    problems.ONE_CATEGORY: Kind.ONE_CATEGORY,
    problems.DISCONNECTED: Kind.DISCONNECTED,
}


def usable_items(
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


def columns_of(table: ResponseTable, items: Sequence[int]) -> ResponseTable:
    """Return the table of these items; rows stay as they are."""
    return ResponseTable(table.categories[:, list(items)], table.people)


def estimate(
    table: ResponseTable, anchors: Mapping[int, Sequence[float]] | None = None
) -> Calibration | None:
    try:
        calibration = calibrate(table, anchors=anchors)
    except np.linalg.LinAlgError:
        return None
    return calibration if calibration.is_converged else None


def place_covariance(calibration: Calibration) -> Floats:
    """Return the covariance of items' places: the means of their thresholds."""
    steps = [len(thresholds) for thresholds in calibration.thresholds]
    mean = np.zeros((len(steps), sum(steps)))
    for item, end in enumerate(np.cumsum(steps)):
        mean[item, end - steps[item] : end] = 1 / steps[item]
    covariance: Floats = mean @ calibration.covariance @ mean.T
    return covariance
