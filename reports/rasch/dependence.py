"""Look for what else than the measure makes answers alike: Q3 and residual PCA.

Residuals are answers less what the model expects of people's measures. Of items that
measure one thing only, they are not related. People with an extreme score have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.rasch.persons import PersonMeasures, moments
from reports.rasch.responses import Floats, ResponseTable

# Two items are dependent if their residuals correlate by so much more than those of
# all pairs do (Christensen, Makransky and Horton 2017).
MOST_Q3 = 0.2
# The first contrast has the strength of so many items if there is a second dimension;
# below it, chance makes it (Linacre 2023, Raîche 2005).
MOST_EIGENVALUE = 2.0


@dataclass(frozen=True)
class LocalDependence:
    """Correlations of residuals [item, item], and their mean over all pairs.

    Corrected is a correlation minus the mean, which is about -1 / (items - 1) without
    dependence. NaN where fewer than three people answered both items.
    """

    q3: Floats
    mean: float

    @property
    def corrected(self) -> Floats:
        return self.q3 - self.mean

    def dependent_pairs(self) -> list[tuple[int, int]]:
        """Return the pairs beyond `MOST_Q3`, the most dependent one first."""
        pairs = np.argwhere(np.triu(self.corrected > MOST_Q3, 1)).tolist()
        ordered = sorted(pairs, key=lambda pair: -self.q3[pair[0], pair[1]])
        return [(first, second) for first, second in ordered]


@dataclass(frozen=True)
class Contrast:
    """The first component of the residuals: its eigenvalue and its share of all.

    In units of items, of which there are as many as the eigenvalues sum to.
    `loadings` are correlations of items with it; two opposite sets of items differ in
    something else than the measure.
    """

    eigenvalue: float
    share: float
    loadings: Floats


def local_dependence(
    table: ResponseTable, thresholds: Sequence[Floats], measures: PersonMeasures
) -> LocalDependence:
    """Return Yen's Q3 (1984) of all pairs of items, of weighted-likelihood measures."""
    residuals, _, weights = _residuals(table, thresholds, measures)
    q3 = correlations(residuals, weights)
    pairs = q3[np.triu_indices(len(q3), 1)]
    known = pairs[np.isfinite(pairs)]
    return LocalDependence(q3, float(known.mean()) if len(known) else float("nan"))


def first_contrast(
    table: ResponseTable, thresholds: Sequence[Floats], measures: PersonMeasures
) -> Contrast | None:
    """Return the first principal component of standardised residuals.

    Of their correlations (Linacre 1998). None if some items have no pair of answers.
    """
    residuals, variance, weights = _residuals(table, thresholds, measures)
    with np.errstate(divide="ignore", invalid="ignore"):
        matrix = correlations(residuals / np.sqrt(variance), weights)
    if not len(matrix) or not np.isfinite(matrix).all():
        return None
    values, vectors = np.linalg.eigh(matrix)
    vector = vectors[:, -1]
    # The sign has no meaning: most of what loads strongly is positive.
    vector = vector * (np.sign((vector**3).sum()) or 1)
    eigenvalue = float(values[-1])
    return Contrast(eigenvalue, eigenvalue / len(matrix), vector * np.sqrt(eigenvalue))


def _residuals(
    table: ResponseTable, thresholds: Sequence[Floats], measures: PersonMeasures
) -> tuple[Floats, Floats, Floats]:
    """Return residuals and variances [row, item], NaN if unanswered, and people."""
    rows = ~measures.is_extreme & np.isfinite(measures.wle)
    answered = table.answered[rows]
    mean, variance, _ = moments(answered, measures.wle[rows], thresholds)
    return (
        np.where(answered, table.categories[rows] - mean, np.nan),
        np.where(answered, variance, np.nan),
        table.people[rows].astype(np.float64),
    )


def correlations(values: Floats, weights: Floats) -> Floats:
    """Return correlations of columns over the rows that have both; weights are counts.

    NaN where fewer than three people have both, or a column has no variance.
    """
    known = np.isfinite(values)
    present = known.astype(np.float64)
    # Moments of a correlation do not depend on where the columns have their zero.
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.nansum(values * weights[:, None], axis=0) / (weights @ present)
        centred = np.where(known, values - centre, 0)
        weighted = centred * weights[:, None]
        people = present.T @ (present * weights[:, None])
        sums = weighted.T @ present
        squares = (weighted * centred).T @ present
        products = weighted.T @ centred
        covariance = products - sums * sums.T / people
        variance = squares - sums**2 / people
        result: Floats = covariance / np.sqrt(variance * variance.T)
    result[(people < 3) | (np.minimum(variance, variance.T) <= 1e-12)] = np.nan
    return result
