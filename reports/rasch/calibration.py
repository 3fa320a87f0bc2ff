"""Estimate thresholds by conditional maximum likelihood.

A person's total score is a sufficient statistic for their measure. Given the score
and which items were answered, the probability of the answers depends on the
thresholds alone (Andersen 1972), so they are estimated without any assumption about
how people are distributed. Its denominators are the elementary symmetric functions:
for each pattern of answered items and each score, the sum over all ways to reach
that score. They are built up item by item, and differentiated in reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from reports.rasch.responses import Floats, ResponseTable

PARTIAL_CREDIT = "partial_credit"
RATING_SCALE = "rating_scale"

# A value to minimise, and its gradient.
Objective = tuple[float, Floats]

# Patterns are taken together as long as their functions fit into this many bytes.
CHUNK = 64 * 1024 * 1024
# Where the likelihood has no maximum, the search ends on a plain: a threshold with
# this error is no estimate. One with a single exception in the answers has about 1.
LARGEST_ERROR = 5.0


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
        return _split(errors, [len(one) for one in self.thresholds])


def calibrate(
    table: ResponseTable,
    *,
    model: str = PARTIAL_CREDIT,
    anchors: Mapping[int, Sequence[float]] | None = None,
) -> Calibration:
    """Estimate the thresholds of all items of a table.

    Each item needs people in each of its categories, and people have to link all
    items (see `problems.examine`). Anchored items keep the given thresholds, and
    put the others on their scale. The rating-scale model needs items with equally
    many categories, and takes no anchors.
    """
    steps = [int(table.categories[:, item].max()) for item in range(table.items)]
    fixed, design = _design(model, steps, anchors or {})
    likelihood = _Likelihood(table, steps)

    def objective(free: Floats) -> Objective:
        value, gradient = likelihood(fixed + design @ free)
        return -value / likelihood.people, -(gradient @ design) / likelihood.people

    free: Floats = np.asarray(
        np.linalg.lstsq(design, likelihood.start() - fixed, rcond=None)[0], np.float64
    )
    if len(free):
        found = minimize(
            objective, free, jac=True, method="BFGS", options={"gtol": 1e-7}
        )
        information = _hessian(objective, found.x) * likelihood.people
        precision = np.linalg.pinv(information, hermitian=True)
        # One step of Newton's from where the search ended.
        free = found.x - precision @ objective(found.x)[1] * likelihood.people
        covariance = design @ precision @ design.T
    else:
        covariance = np.zeros((sum(steps), sum(steps)))
    thresholds = fixed + design @ free
    value, gradient = objective(free)
    return Calibration(
        model=model,
        thresholds=_split(thresholds, steps),
        covariance=covariance,
        log_likelihood=-value * likelihood.people,
        is_converged=bool(
            np.isfinite(thresholds).all()
            and np.diag(covariance).max(initial=0) < LARGEST_ERROR**2
            and np.abs(gradient).max(initial=0) < 1e-5
        ),
    )


def _design(
    model: str, steps: Sequence[int], anchors: Mapping[int, Sequence[float]]
) -> tuple[Floats, Floats]:
    """Return fixed thresholds, and how thresholds follow from free parameters."""
    total = sum(steps)
    item_of = np.repeat(np.arange(len(steps)), steps)
    if model == RATING_SCALE:
        if len(set(steps)) > 1 or anchors:
            raise ValueError("The rating-scale model needs equal items, not anchored")
        places = _centred(len(steps))[item_of]
        distances = np.tile(_centred(steps[0]), (len(steps), 1))
        return np.zeros(total), np.hstack([places, distances])
    if not anchors:
        return np.zeros(total), _centred(total)
    fixed = np.zeros(total)
    for item, values in anchors.items():
        fixed[item_of == item] = values
    return fixed, np.eye(total)[:, ~np.isin(item_of, list(anchors))]


def _centred(size: int) -> Floats:
    """Return the design of values with sum 0, of which the last is not free."""
    return np.vstack([np.eye(size - 1), -np.ones((1, size - 1))])


def _split(values: Floats, steps: Sequence[int]) -> tuple[Floats, ...]:
    return tuple(np.split(values, np.cumsum(steps)[:-1]))


def _hessian(
    objective: Callable[[Floats], Objective], at: Floats, step: float = 1e-4
) -> Floats:
    rows = []
    for unit in np.eye(len(at)) * step:
        _, after = objective(at + unit)
        _, before = objective(at - unit)
        rows.append((after - before) / (2 * step))
    hessian = np.array(rows)
    return (hessian + hessian.T) / 2


class _Likelihood:
    """The conditional log-likelihood of thresholds, and its gradient."""

    def __init__(self, table: ResponseTable, steps: Sequence[int]) -> None:
        self.steps = steps
        self.people = float(table.people.sum())
        # How many people chose a category or a higher one, for each threshold.
        self.reached = np.concatenate(
            [
                np.cumsum(table.category_counts(item)[::-1])[::-1][1:]
                for item in range(table.items)
            ]
        ).astype(np.float64)
        self.answered = np.array(
            [table.people[table.answered[:, item]].sum() for item in range(table.items)]
        )
        self.patterns = table.patterns
        self.score_counts = table.score_counts(sum(steps))

    def start(self) -> Floats:
        """Return thresholds to start from: logits of neighbouring categories."""
        counts = [
            np.append(answered, reached) - np.append(reached, 0)
            for answered, reached in zip(
                self.answered, _split(self.reached, self.steps), strict=True
            )
        ]
        logits = [np.log((one[:-1] + 0.5) / (one[1:] + 0.5)) for one in counts]
        thresholds = np.concatenate(logits)
        return np.asarray(thresholds - thresholds.mean())

    def __call__(self, thresholds: Floats) -> tuple[float, Floats]:
        # Per item: the logarithms of exp(-δ_1 - … - δ_x) for x = 0, 1, ….
        weights = [
            np.append(0.0, -np.cumsum(one)) for one in _split(thresholds, self.steps)
        ]
        # Dividing an item's weights by their largest keeps numbers in range.
        largest = np.array([one.max() for one in weights])
        scaled = [np.exp(one - one.max()) for one in weights]
        value = -float(self.reached @ thresholds)
        expected = np.zeros(len(thresholds))
        for chunk in self._chunks():
            people = self.score_counts[chunk]
            log_sum, reached = _symmetric(self.patterns[chunk], people, scaled)
            value -= log_sum + float(
                people.sum(axis=1) @ self.patterns[chunk] @ largest
            )
            expected += reached
        return value, expected - self.reached

    def _chunks(self) -> Iterator[slice]:
        row = 8 * (len(self.steps) + 1) * (sum(self.steps) + 1)
        size = max(1, CHUNK // row)
        for start in range(0, len(self.patterns), size):
            yield slice(start, start + size)


def _symmetric(
    patterns: NDArray[np.bool_], people: Floats, weights: Sequence[Floats]
) -> tuple[float, Floats]:
    """Sum the logarithms of the elementary symmetric functions over people.

    Also return how many people are expected to reach each category of each item,
    which is the derivative with respect to the thresholds with its sign turned.
    """
    sums = np.zeros_like(people)
    sums[:, 0] = 1
    before = []
    for item, weight in enumerate(weights):
        before.append(sums)
        sums = _convolve(sums, weight, patterns[:, item])
    with np.errstate(divide="ignore", invalid="ignore"):
        log_sum = float(np.where(people > 0, people * np.log(sums), 0).sum())
        adjoint = np.where(people > 0, people / sums, 0)
    expected: list[Floats] = []
    for item in reversed(range(len(weights))):
        weight, answered = weights[item], patterns[:, item]
        width = adjoint.shape[1]
        chosen = np.array(
            [
                weight[x]
                * np.einsum(
                    "ps,ps,p->",
                    adjoint[:, x:],
                    before[item][:, : width - x],
                    answered,
                )
                for x in range(len(weight))
            ]
        )
        expected.append(np.cumsum(chosen[::-1])[::-1][1:])
        adjoint = _correlate(adjoint, weight, answered)
    return log_sum, np.concatenate(expected[::-1])


def _convolve(sums: Floats, weight: Floats, answered: NDArray[np.bool_]) -> Floats:
    result = sums * np.where(answered, weight[0], 1)[:, None]
    for x in range(1, len(weight)):
        result[:, x:] += sums[:, :-x] * (weight[x] * answered)[:, None]
    return result


def _correlate(adjoint: Floats, weight: Floats, answered: NDArray[np.bool_]) -> Floats:
    result = adjoint * np.where(answered, weight[0], 1)[:, None]
    for x in range(1, len(weight)):
        result[:, :-x] += adjoint[:, x:] * (weight[x] * answered)[:, None]
    return result
