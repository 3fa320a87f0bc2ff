"""Estimate thresholds by conditional maximum likelihood.

A person's total score is a sufficient statistic for their measure. Given the score
and which items were answered, the probability of the answers depends on the
thresholds alone (Andersen 1972), so they are estimated without any assumption about
how people are distributed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.rasch.conditional import ConditionalLikelihood
from reports.rasch.responses import Floats, ResponseTable

PARTIAL_CREDIT = "partial_credit"
RATING_SCALE = "rating_scale"

# Where the likelihood has no maximum, the search ends on a plain: a threshold with
# this error is no estimate. One with a single exception in the answers has about 1.
LARGEST_ERROR = 5.0
# Per person. Added where the search starts, because it may be 0 in some directions.
SMALLEST_INFORMATION = 1e-6


@dataclass(frozen=True)
class Calibration:
    """Thresholds of items, as one array for each item, and their precision.

    `covariance` is that of all thresholds in the order of items and steps; it is
    zero for anchored items. Without anchors the mean of all thresholds is 0.
    """

    model: str
    thresholds: tuple[Floats, ...]
    covariance: Floats
    log_likelihood: float
    is_converged: bool

    @property
    def standard_errors(self) -> tuple[Floats, ...]:
        errors = np.sqrt(np.clip(np.diag(self.covariance), 0, None))
        return _split(errors, [len(steps) for steps in self.thresholds])


def calibrate(
    table: ResponseTable,
    *,
    model: str = PARTIAL_CREDIT,
    anchors: Mapping[int, Sequence[float]] | None = None,
) -> Calibration:
    """Estimate the thresholds of all items of a table.

    Each item needs people in each of its categories, and people have to link all
    items (see `problems.examine`). Anchored items keep the given thresholds, and
    put the others on their scale; nobody needs to be in all of their categories. The
    rating-scale model needs items with equally many categories, and takes no anchors.
    """
    anchors = anchors or {}
    steps = [
        len(anchors[item])
        if item in anchors
        else int(table.categories[:, item].max(initial=0))
        for item in range(table.items)
    ]
    fixed, design = _design(model, steps, anchors)
    likelihood = ConditionalLikelihood(table, steps)
    people = float(table.people.sum())

    def objective(free: Floats) -> tuple[float, Floats]:
        value, gradient = likelihood(fixed + design @ free)
        return -value / people, -(gradient @ design) / people

    def information(free: Floats) -> Floats:
        curvature: Floats = design.T @ likelihood.information(fixed + design @ free)
        return curvature @ design / people

    free: Floats = np.asarray(
        np.linalg.lstsq(design, _start(table, steps) - fixed, rcond=None)[0], np.float64
    )
    covariance = np.zeros((sum(steps), sum(steps)))
    if len(free):
        free, precision = optimum(objective, information, free)
        covariance = design @ precision @ design.T / people
    thresholds = fixed + design @ free
    value, gradient = objective(free)
    return Calibration(
        model=model,
        thresholds=_split(thresholds, steps),
        covariance=covariance,
        log_likelihood=-value * people,
        is_converged=bool(
            np.isfinite(thresholds).all()
            and np.diag(covariance).max(initial=0) < LARGEST_ERROR**2
            and np.abs(gradient).max(initial=0) < 1e-5
        ),
    )


def optimum(
    objective: Callable[[Floats], tuple[float, Floats]],
    information: Callable[[Floats], Floats],
    start: Floats,
) -> tuple[Floats, Floats]:
    """Return the parameters at the minimum, and their precision."""
    # It takes half a second to import, and most processes only read results.
    from scipy.optimize import minimize

    # The information takes as long as ten gradients. So Newton's steps are
    # taken with that of the start, which the search corrects as it goes.
    ridge = SMALLEST_INFORMATION * np.eye(len(start))
    inverse = np.linalg.inv(information(start) + ridge)
    end = minimize(
        objective,
        start,
        jac=True,
        method="BFGS",
        options={
            "gtol": 1e-5,
            "hess_inv0": (inverse + inverse.T) / 2,
        },
    )
    precision: Floats = np.asarray(
        np.linalg.pinv(information(end.x), hermitian=True), np.float64
    )
    # One step of Newton's from where the search ended.
    return end.x - precision @ objective(end.x)[1], precision


def _design(
    model: str, steps: Sequence[int], anchors: Mapping[int, Sequence[float]]
) -> tuple[Floats, Floats]:
    """Return fixed thresholds, and how thresholds follow from free parameters."""
    total = sum(steps)
    item_of = np.repeat(np.arange(len(steps)), steps)
    if model == RATING_SCALE:
        if len(set(steps)) > 1 or anchors:
            raise ValueError("The rating-scale model needs equal items, not anchored")
        places = centred(len(steps))[item_of]
        distances = np.tile(centred(steps[0]), (len(steps), 1))
        return np.zeros(total), np.hstack([places, distances])
    if not anchors:
        return np.zeros(total), centred(total)
    fixed = np.zeros(total)
    for item, values in anchors.items():
        fixed[item_of == item] = values
    return fixed, np.eye(total)[:, ~np.isin(item_of, list(anchors))]


def centred(size: int) -> Floats:
    """Return the design of values with sum 0, of which the last is not free."""
    return np.vstack([np.eye(size - 1), -np.ones((1, size - 1))])


def _split(values: Floats, steps: Sequence[int]) -> tuple[Floats, ...]:
    return tuple(np.split(values, np.cumsum(steps)[:-1]))


def _start(table: ResponseTable, steps: Sequence[int]) -> Floats:
    """Return thresholds to start from: logits of neighbouring categories."""
    counts = [
        table.category_counts(item, most + 1) + 0.5 for item, most in enumerate(steps)
    ]
    thresholds = np.concatenate(
        [np.log(item_counts[:-1] / item_counts[1:]) for item_counts in counts]
    )
    return np.asarray(thresholds - thresholds.mean())
