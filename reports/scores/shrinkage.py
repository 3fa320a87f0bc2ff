"""Estimate how far schools truly differ, and draw scores toward their mean.

The mean of a school is its true mean and an error, which is larger where fewer people
answered. Its reliability is the share of its variance that is true; the empirical
Bayes estimate (Morris 1983) keeps that share of its distance from the mean of schools.
Numbers in, numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.scores.comparisons import random_effects
from reports.scores.scale import (
    POINTS,
    SMALLEST_DEVIATION,
    SMALLEST_SCHOOL,
    Scale,
    Sums,
)

# Below the first reliability a band has no color, below the second it comes with its
# doubt. That is higher: a reliability is an estimate, and none that is truly below the
# first one should pass for a certain band.
LEAST_RELIABILITY = 0.6
DOUBTED_RELIABILITY = 0.75
# The level of the test that schools differ at all. The moment estimate alone is above
# 0 for half of all surveys in which they do not.
LEVEL = 0.01


@dataclass(frozen=True, slots=True)
class SchoolDifferences:
    """The mean of schools and the standard deviation of their true means, in logits.

    The latter is 0 if chance alone can explain that they differ. `within` is the
    deviation of people from the mean of their school; 0 if it is not known.
    """

    mean: float = 0.0
    between: float = 0.0
    within: float = 0.0

    @property
    def intraclass_correlation(self) -> float | None:
        """Return the share of the variance of people that lies between schools."""
        if not self.within:
            return None
        return self.between**2 / (self.between**2 + self.within**2)


def estimate_differences(schools: Sums) -> SchoolDifferences:
    """Estimate differences from the sums of each school.

    Only schools in which enough people have a measure take part. The errors of their
    means are those of people in all of them, because the spread of a few people is
    mostly chance itself.
    """
    # It takes 0.2 s to import, and web servers read scores only.
    from scipy.special import chdtrc

    large = schools.people >= SMALLEST_SCHOOL
    count = int(large.sum())
    if count < 2:
        return SchoolDifferences()
    people = schools.people[large]
    around = schools.squares_around[large].sum() / (people.sum() - count)
    within = math.sqrt(around)
    if within < SMALLEST_DEVIATION:
        return SchoolDifferences()
    mean, between, scatter = random_effects(schools.means[large], around / people)
    if chdtrc(count - 1, scatter) > LEVEL:
        between = 0.0
    return SchoolDifferences(mean, math.sqrt(between), within)


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """The same in points of a scale: mean of schools, and both deviations."""

    center: float
    between: float
    within: float

    @classmethod
    def of(cls, scale: Scale, differences: SchoolDifferences) -> Shrinkage:
        points = POINTS / scale.deviation
        return cls(
            scale.points_beyond(differences.mean),
            points * differences.between,
            points * differences.within,
        )

    def reliability(self, people: float) -> float:
        """Return λ = τ² / (τ² + σ²/n); 0 if schools do not differ."""
        if not self.between or not people:
            return 0.0
        return self.between**2 / (self.between**2 + self.within**2 / people)

    def draw(self, points: float, people: float) -> float:
        """Return the likely score; as it is if schools do not differ."""
        reliability = self.reliability(people) or 1.0
        return self.center + reliability * (points - self.center)

    def error(self, reliability: float) -> float:
        """Return the standard error of a likely score."""
        return self.between * math.sqrt(1 - reliability)


def likely_error(error: float | None, reliability: float) -> float | None:
    """Return the standard error of a mean of likely scores, from that of their means.

    As for each of them, it is smaller by the root of the reliability: exact where the
    errors of the measures go together as their true means do.
    """
    return None if error is None else error * math.sqrt(reliability)


def shared_error(errors: Sequence[float], of_mean: float | None) -> float:
    """Return the correlation of a place's errors of an essential's measures.

    It is the one that all pairs of them must have for the error of the essential to be
    `of_mean`; 1 if the place does not show that, which makes errors the largest.
    """
    alone = math.fsum(error**2 for error in errors)
    together = math.fsum(errors) ** 2 - alone
    if of_mean is None or not together:
        return 1.0
    shared = ((len(errors) * of_mean) ** 2 - alone) / together
    return min(max(shared, -1.0), 1.0)


def of_mean(deviations: Sequence[float], shared: float) -> float:
    """Return the deviation of a mean, if all pairs have the same correlation."""
    squares = math.fsum(each**2 for each in deviations)
    variance = (1 - shared) * squares + shared * math.fsum(deviations) ** 2
    return math.sqrt(max(variance, 0.0)) / len(deviations)
