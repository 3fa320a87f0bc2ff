"""Put means of people's measures on a scale from 1 to 99, and into five bands.

On the benchmark's scale, all of its people have the mean 50, and 20 points are one
standard deviation of the true differences between its schools.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MIDDLE, POINTS = 50, 20
LOWEST, HIGHEST = 1, 99
# The first scores of the bands: 1-19, 20-39, 40-59, 60-79, 80-99.
BANDS = (1, 20, 40, 60, 80)
# The mean of a smaller school is mostly chance; fewer schools have no deviation.
SMALLEST_SCHOOL = 10
FEWEST_SCHOOLS = 10
SCHOOLS, PEOPLE = "schools", "people"
# Of an estimate, 95 % of the errors are within so many standard errors.
CERTAIN = 1.96
# Below this all people have the same measure, but for rounding.
SMALLEST_DEVIATION = 1e-9


@dataclass(frozen=True, slots=True)
class Scale:
    """The mean and the deviation of a benchmark, in logits."""

    mean: float
    deviation: float
    unit: str

    def points(self, mean: float) -> float:
        """Return a score without rounding."""
        return within_scale(self.points_beyond(mean))

    def points_beyond(self, mean: float) -> float:
        """Return a score that may be below 1 or above 99."""
        return MIDDLE + POINTS * (mean - self.mean) / self.deviation


@dataclass(frozen=True, slots=True)
class Sums:
    """Numbers of measured people, sums of their measures, and sums of squares."""

    people: Floats
    sums: Floats
    squares: Floats

    @property
    def means(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.sums / self.people)

    @property
    def squares_around(self) -> Floats:
        """Sums of the squared distances from the means; 0 without people."""
        with np.errstate(divide="ignore", invalid="ignore"):
            around = np.maximum(self.squares - self.sums**2 / self.people, 0)
        return np.asarray(np.where(self.people > 0, around, 0))

    @property
    def variances(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            around = self.squares_around / (self.people - 1)
        return np.asarray(np.where(self.people > 1, around, 0))

    @property
    def errors(self) -> Floats:
        """Standard errors of the means; NaN of fewer than two people."""
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.sqrt(self.variances / self.people)
        return np.asarray(np.where(self.people > 1, errors, np.nan))


def covariance(total: Sums, first: int, second: int, products: Floats) -> Floats:
    """Return the covariance of the means of two measures.

    `products` are numbers of people who have both, sums of their measures, and of
    products. The others have no part in it, so that with all people in both it is the
    covariance of people divided by their number.
    """
    both, sums, other_sums, multiplied = products
    mean, other_mean = total.means[first], total.means[second]
    people, other_people = total.people[first], total.people[second]
    around = (
        multiplied - mean * other_sums - other_mean * sums + both * mean * other_mean
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        divisor = np.sqrt(people * (people - 1) * other_people * (other_people - 1))
        return np.asarray(np.where(divisor > 0, around / divisor, np.nan))


def without_few_pairs(
    products: Floats, first: Sums, second: Sums, *, minimum: int, sign: int
) -> Floats:
    """Replace products of fewer people than the minimum, who have both measures.

    By those of people whose two measures go together fully, in the direction of the
    sign: this makes the error of their essential the largest, and tells no more than
    the errors of both measures. The error of an essential would otherwise tell how far
    a single person is from the means.
    """
    both = products[0]
    people = np.sqrt(first.people * second.people)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, other_mean = first.means, second.means
    around = np.sqrt(first.squares_around * second.squares_around)
    largest = np.array(
        [
            people,
            people * mean,
            people * other_mean,
            people * mean * other_mean + sign * around,
        ]
    )
    return np.asarray(np.where((both > 0) & (both < minimum), largest, products))


def benchmark_scale(schools: Sums, between: float) -> Scale | None:
    """Return the scale of a benchmark, or None if all people are alike.

    `schools` are the sums of each, `between` is the deviation of their true means.
    With too few schools, or if that is 0, the deviation is that of people.
    """
    total = Sums(
        schools.people.sum(keepdims=True),
        schools.sums.sum(keepdims=True),
        schools.squares.sum(keepdims=True),
    )
    if not total.people[0]:
        return None
    deviation, unit = between, SCHOOLS
    if has_few_schools(schools) or not between:
        deviation, unit = float(np.sqrt(total.variances[0])), PEOPLE
    if deviation < SMALLEST_DEVIATION:
        return None
    return Scale(float(total.means[0]), deviation, unit)


def has_few_schools(schools: Sums) -> bool:
    return int((schools.people >= SMALLEST_SCHOOL).sum()) < FEWEST_SCHOOLS


def within_scale(points: float) -> float:
    return min(max(points, LOWEST), HIGHEST)


def rounded(points: float) -> int:
    """Round half up, before banding: 39.5 is a 40."""
    return math.floor(points + 0.5)


def band(score: int) -> int:
    """Return 1 for the lowest band to 5 for the highest."""
    return bisect_right(BANDS, score)


def band_chances(score: float, error: float) -> list[float]:
    """Return how probable each band is, of a true score around a likely one.

    It has a normal distribution with this standard error. Scores are rounded before
    banding, so bands begin half a point below their first score.
    """
    below = [
        math.erfc((score - first + 0.5) / error / math.sqrt(2)) / 2
        for first in BANDS[1:]
    ]
    return [high - low for low, high in zip([0.0, *below], [*below, 1.0], strict=True)]


def essential_score(measures: Sequence[tuple[int, bool]]) -> int:
    """Return the mean of the shown scores of an essential's measures, rounded.

    Each comes with whether high values are good; the others are turned round.
    """
    turned = [
        score if is_positive else LOWEST + HIGHEST - score
        for score, is_positive in measures
    ]
    return rounded(sum(turned) / len(turned))
