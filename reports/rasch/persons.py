"""Measure people by their scores: maximum likelihood and Warm's weighted likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.rasch.responses import Floats, Integers, ResponseTable

# Measures stay within these bounds; only absurd thresholds lead beyond.
LARGEST = 40.0
# Bisection alone would need 50 steps.
STEPS = 100
PRECISION = 1e-10
# Scores are measured together as long as their probabilities fit into this.
CHUNK = 64 * 1024 * 1024
# A curve through fewer scores has no end that could be continued.
SCORES_OF_A_CURVE = 4


@dataclass(frozen=True)
class PersonMeasures:
    """Measures of the rows of a table, in logits.

    `standard_error` is that of `wle`. The lowest and the highest score have no
    maximum-likelihood measure: there `mle` continues the curve through the scores
    that people have on the same items, as eRm does, and is NaN if these are fewer
    than four. Rows without answers are NaN.
    """

    mle: Floats
    wle: Floats
    standard_error: Floats
    is_extreme: NDArray[np.bool_]

    def rows(self, chosen: NDArray[np.bool_]) -> PersonMeasures:
        return PersonMeasures(
            *(self.mle[chosen], self.wle[chosen], self.standard_error[chosen]),
            self.is_extreme[chosen],
        )


def measure_people(
    table: ResponseTable, thresholds: Sequence[Floats]
) -> PersonMeasures:
    """Measure each row of a table; equal scores on the same items share a measure."""
    most = table.patterns @ np.array([len(steps) for steps in thresholds])
    pairs, place = np.unique(
        np.column_stack([table.pattern_of_row, table.scores]),
        axis=0,
        return_inverse=True,
    )
    place = place.reshape(-1)
    pattern, score = pairs.T
    answered = table.patterns[pattern]
    is_extreme = (score == 0) | (score == most[pattern])
    is_measured = most[pattern] > 0
    mle, wle, error = np.full((3, len(pairs)), np.nan)
    mle[~is_extreme], _ = _solve(
        answered[~is_extreme], score[~is_extreme], thresholds, is_weighted=False
    )
    wle[is_measured], error[is_measured] = _solve(
        answered[is_measured], score[is_measured], thresholds, is_weighted=True
    )
    for number in np.unique(pattern[is_extreme & is_measured]):
        of_pattern = pattern == number
        mle[of_pattern] = _continue_curve(score[of_pattern], mle[of_pattern])
    return PersonMeasures(mle[place], wle[place], error[place], is_extreme[place])


def moments(
    answered: NDArray[np.bool_], measures: Floats, thresholds: Sequence[Floats]
) -> tuple[Floats, Floats, Floats]:
    """Return mean, variance and third central moment of each answer.

    All have a row for each measure and a column for each item; they are 0 where
    the item was not answered.
    """
    result = np.zeros((3, len(measures), len(thresholds)))
    for item, steps in enumerate(thresholds):
        category = np.arange(len(steps) + 1)
        probability = category_chances(measures, steps)
        mean = probability @ category
        distance = category - mean[:, None]
        result[0, :, item] = mean
        result[1, :, item] = (probability * distance**2).sum(axis=1)
        result[2, :, item] = (probability * distance**3).sum(axis=1)
    mean, variance, third = result * answered
    return mean, variance, third


def category_chances(measures: Floats, steps: Floats) -> Floats:
    """Return the probabilities [measure, category] of an item with these thresholds."""
    logits = np.arange(len(steps) + 1) * measures[:, None]
    logits = logits - np.append(0, np.cumsum(steps))
    chances: Floats = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    return chances


def _solve(
    answered: NDArray[np.bool_],
    scores: Integers,
    thresholds: Sequence[Floats],
    *,
    is_weighted: bool,
) -> tuple[Floats, Floats]:
    """Return measures at which the expected score is the given one, and their errors.

    Warm (1989) adds half the derivative of the information, divided by the
    information, which removes the bias and keeps extreme scores finite.
    """
    widest = max((len(steps) for steps in thresholds), default=0) + 1
    size = max(1, CHUNK // (8 * 4 * (widest + len(thresholds))))
    chunks = [
        _solve_chunk(
            answered[start : start + size],
            scores[start : start + size],
            thresholds,
            is_weighted=is_weighted,
        )
        for start in range(0, len(scores), size)
    ]
    if not chunks:
        return np.empty(0), np.empty(0)
    measures, errors = zip(*chunks, strict=True)
    return np.concatenate(measures), np.concatenate(errors)


def _solve_chunk(
    answered: NDArray[np.bool_],
    scores: Integers,
    thresholds: Sequence[Floats],
    *,
    is_weighted: bool,
) -> tuple[Floats, Floats]:
    """Search by Newton's method, held between bounds that bisection narrows."""
    low, high = np.full((2, len(scores)), LARGEST)
    low = -low
    measures = np.zeros(len(scores))
    for _ in range(STEPS):
        mean, variance, third = (
            moment.sum(axis=1) for moment in moments(answered, measures, thresholds)
        )
        surplus = scores - mean
        if is_weighted:
            surplus = surplus + third / (2 * variance)
        low = np.where(surplus > 0, measures, low)
        high = np.where(surplus > 0, high, measures)
        after = measures + surplus / variance
        is_outside = (after <= low) | (after >= high)
        after = np.where(is_outside, (low + high) / 2, after)
        change = np.abs(after - measures).max(initial=0)
        measures = after
        if change < PRECISION:
            break
    variance = moments(answered, measures, thresholds)[1].sum(axis=1)
    return measures, 1 / np.sqrt(variance)


def _continue_curve(scores: Integers, mle: Floats) -> Floats:
    """Fill in the ends, from the natural spline through the measures of a pattern."""
    # As in `reports.rasch.calibration`.
    from scipy.interpolate import CubicSpline

    known = np.isfinite(mle)
    if known.sum() < SCORES_OF_A_CURVE:
        return mle
    x, y = scores[known], mle[known]
    slope = CubicSpline(x, y, bc_type="natural").derivative()
    low = y[0] + slope(x[0]) * (scores - x[0])
    high = y[-1] + slope(x[-1]) * (scores - x[-1])
    return np.where(known, mle, np.where(scores < x[0], low, high))
