"""Compare many schools: changes without the noise of small schools, and correlation.

Numbers in, numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Fewer schools say nothing about how two numbers go together.
FEWEST = 10
# The share of chance among all differences that are called more than chance.
LEVEL = 0.05


class RandomEffects(NamedTuple):
    """Values that truly differ, with errors of their own: a random-effects model."""

    mean: float
    # The variance of true values.
    between: float
    # Cochran's Q: that of chance alone has one less than the number of values.
    scatter: float


def random_effects(
    values: Sequence[float] | Floats, variances: Sequence[float] | Floats
) -> RandomEffects:
    """Estimate the mean and the variance of the true values.

    By moments, as DerSimonian and Laird (1986). `variances` are those of the errors,
    and above 0.
    """
    observed, errors = np.asarray(values, float), np.asarray(variances, float)
    weights = 1 / errors
    mean = float(np.average(observed, weights=weights))
    scatter = float((weights * np.square(observed - mean)).sum())
    excess = max(scatter - (len(observed) - 1), 0.0)
    scale = float(weights.sum() - np.square(weights).sum() / weights.sum())
    between = excess / scale if scale > 0 else 0.0
    if between:
        mean = float(np.average(observed, weights=1 / (errors + between)))
    return RandomEffects(mean, between, scatter)


def likely_changes(changes: Sequence[float], errors: Sequence[float]) -> list[float]:
    """Return each school's change, drawn toward the mean of all schools.

    The more of it its own standard error can explain, the farther: the empirical
    Bayes estimate. Errors are above 0. Without it, the largest changes would be those
    of the smallest schools, year after year.
    """
    if not changes:
        return []
    variances = np.square(np.asarray(errors, float))
    mean, between, _scatter = random_effects(changes, variances)
    reliability = between / (between + variances)
    drawn = mean + reliability * (np.asarray(changes, float) - mean)
    return [float(change) for change in drawn]


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Return Pearson's correlation, or None of few schools or of equal numbers."""
    if len(xs) < FEWEST or len(set(xs)) == 1 or len(set(ys)) == 1:
        return None
    return float(np.corrcoef(xs, ys)[0, 1])


def is_more_than_chance(coefficient: float, schools: int) -> bool:
    """Test whether a correlation differs from 0, by Fisher's transformation."""
    if abs(coefficient) >= 1:
        return True
    return abs(math.atanh(coefficient)) * math.sqrt(schools - 3) > 1.96


def significant(chances: Mapping[int, float]) -> set[int]:
    """Return the tests that the step-up procedure of Benjamini and Hochberg rejects.

    So at most 5 % of all that it rejects are chance, however many tests there are.
    """
    ordered = sorted(chances, key=lambda test: chances[test])
    limits = (LEVEL * (rank + 1) / len(ordered) for rank in range(len(ordered)))
    rejected = 0
    for rank, (test, limit) in enumerate(zip(ordered, limits, strict=True), 1):
        if chances[test] <= limit:
            rejected = rank
    return set(ordered[:rejected])
