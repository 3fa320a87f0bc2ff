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
    found, variances = np.asarray(changes, float), np.square(np.asarray(errors, float))
    weights = 1 / variances
    mean = float(np.average(found, weights=weights))
    scatter = float((weights * np.square(found - mean)).sum()) - (len(found) - 1)
    scale = float(weights.sum() - np.square(weights).sum() / weights.sum())
    between = max(scatter, 0.0) / scale if scale > 0 else 0.0
    if between:
        mean = float(np.average(found, weights=1 / (variances + between)))
    kept = between / (between + variances)
    return [float(one) for one in mean + kept * (found - mean)]


def correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Pearson's correlation, or None of few schools or of equal numbers."""
    if len(one) < FEWEST or len(set(one)) == 1 or len(set(other)) == 1:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def is_more_than_chance(found: float, schools: int) -> bool:
    """Test whether a correlation differs from 0, by Fisher's transformation."""
    if abs(found) >= 1:
        return True
    return abs(math.atanh(found)) * math.sqrt(schools - 3) > 1.96
