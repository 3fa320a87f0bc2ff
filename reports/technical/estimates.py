"""Intervals, errors of clustered and paired means, and weights by raking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.rasch.responses import Floats

Codes = NDArray[np.intp]

# The quantile of a two-sided interval that holds the value in 95 of 100 cases.
QUANTILE = 1.959964
# Weights beyond so many times the mean, or so small a part of it, are trimmed: a few
# people would speak for many.
MOST_WEIGHT = 5.0
RAKING_STEPS = 200
# How far the shares of weighted people may be from the targets.
TOLERANCE = 1e-6


def wilson_interval(successes: int, people: int) -> tuple[float, float]:
    """Return the 95 % interval of a proportion, from 0 to 1 (Wilson 1927).

    Unlike that of Wald it holds its level near 0 and 1. NaN without people.
    """
    if not people:
        return float("nan"), float("nan")
    share, z2 = successes / people, QUANTILE**2
    centre = (share + z2 / (2 * people)) / (1 + z2 / people)
    half = (
        QUANTILE
        * (share * (1 - share) / people + z2 / (4 * people**2)) ** 0.5
        / (1 + z2 / people)
    )
    return max(centre - half, 0.0), min(centre + half, 1.0)


def clustered_error(
    values: Floats, clusters: Codes, weights: Floats | None = None
) -> float:
    """Return the standard error of a mean of people in clusters, such as schools.

    The sandwich estimator with the correction G / (G - 1) for G clusters (Liang and
    Zeger 1986, Cameron and Miller 2015); the linearised error of a weighted mean
    (Binder 1983). A paired difference is the mean of people's differences. NaN values
    are left out; NaN with fewer than two clusters.
    """
    known = np.isfinite(values)
    weight = np.ones(known.sum()) if weights is None else weights[known]
    values, clusters = values[known], clusters[known]
    number = len(np.unique(clusters))
    if number < 2:
        return float("nan")
    residuals = weight * (values - np.average(values, weights=weight))
    sums = np.bincount(clusters, residuals)
    variance = number / (number - 1) * (sums**2).sum() / weight.sum() ** 2
    return float(np.sqrt(variance))


def mean_error(values: Floats) -> float:
    """Return the standard error of a mean of independent people. NaN are left out."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return float("nan")
    return float(known.std(ddof=1) / np.sqrt(len(known)))


@dataclass(frozen=True)
class Raked:
    """Weights of people, with the mean 1.

    `distance` is the largest one of a share of weighted people from its target, which
    trimming may leave; `trimmed` is how many people have a trimmed weight.
    """

    weights: Floats
    distance: float
    trimmed: int

    @property
    def design_effect(self) -> float:
        """How much larger weights make the variance of a mean, at most (Kish 1965)."""
        return float(
            len(self.weights) * (self.weights**2).sum() / self.weights.sum() ** 2
        )


def rake(margins: Sequence[tuple[Codes, Floats]]) -> Raked:
    """Return weights with which people have the shares of the roster in each margin.

    Iterative proportional fitting (Deming and Stephan 1940). A margin has the code of
    each person, and the share of each code; codes without people are left out.
    """
    people = len(margins[0][0])
    weights: Floats = np.ones(people)
    targets = []
    for codes, shares in margins:
        present = np.bincount(codes, minlength=len(shares)) > 0
        wanted = np.where(present, shares, 0)
        targets.append((codes, wanted / wanted.sum()))
    distance = np.inf
    for _ in range(RAKING_STEPS):
        distance = 0.0
        for codes, wanted in targets:
            sums = np.bincount(codes, weights, len(wanted)) / weights.sum()
            distance = max(distance, float(np.abs(sums - wanted).max()))
            with np.errstate(divide="ignore", invalid="ignore"):
                weights = weights * np.where(sums > 0, wanted / sums, 0)[codes]
        weights = np.clip(weights / weights.mean(), 1 / MOST_WEIGHT, MOST_WEIGHT)
        if distance < TOLERANCE:
            break
    is_trimmed = (weights <= 1 / MOST_WEIGHT) | (weights >= MOST_WEIGHT)
    return Raked(weights / weights.mean(), distance, int(is_trimmed.sum()))
