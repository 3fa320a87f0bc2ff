"""Compare many schools: changes without the noise of small schools, and correlation.

Numbers in, numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

# Fewer schools say nothing about how two numbers go together.
FEWEST = 10


def likely_changes(changes: Sequence[float], errors: Sequence[float]) -> list[float]:
    """Return each school's change, drawn toward the mean of all schools.

    The more of it its own standard error can explain, the farther: the empirical
    Bayes estimate of a random-effects model. The variance of true changes is that of
    DerSimonian and Laird (1986). Errors are above 0. Without it, the largest changes
    would be those of the smallest schools, year after year.
    """
    if not changes:
        return []
    observed = np.asarray(changes, float)
    variances = np.square(np.asarray(errors, float))
    weights = 1 / variances
    mean = float(np.average(observed, weights=weights))
    scatter = float((weights * np.square(observed - mean)).sum()) - (len(observed) - 1)
    scale = float(weights.sum() - np.square(weights).sum() / weights.sum())
    between = max(scatter, 0.0) / scale if scale > 0 else 0.0
    if between:
        mean = float(np.average(observed, weights=1 / (variances + between)))
    reliability = between / (between + variances)
    return [float(change) for change in mean + reliability * (observed - mean)]


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
