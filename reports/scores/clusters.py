"""Calculate standard errors of larger places, in which people of a school are alike.

Schools are clusters. From ten of them on, the variance of a mean is the sandwich
estimator with the correction G / (G - 1) for G clusters: with residual sums of schools
e_g = Σ (x - mean), it is G / (G - 1) · Σ e_g² / N² (Liang and Zeger 1986; CR1 in
Cameron and Miller 2015). Fewer schools say too little of how far they differ: then it
is that of a random-effects model, τ² Σ (n_g / N)² + σ² / N, in which all schools of the
round tell how far schools and people differ (Moulton 1986). From ten to 29 schools, a
sandwich is too small more often than not (Cameron, Gelbach and Miller 2008), and the
larger one of both counts. Of a single school, there is none; nor of two to nine where
chance can explain how far schools differ, because they may differ all the same.
Numbers in, numbers out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reports.rasch.responses import Integers
from reports.scores.scale import FEWEST_SCHOOLS, Floats
from reports.suppression.tables import Mask
from survey.instrument.definitions.schema import Measures

# From so many on, the sandwich estimator alone.
ENOUGH_SCHOOLS = 30


class ErrorParts(NamedTuple):
    """What the schools of larger places add to the errors of means.

    All but `schools` are in points.
    """

    # Residual sums divided by the people of the place; and the deviation of schools
    # times the school's share of people: [school, group].
    residuals: Floats
    between: Floats
    # Of people within schools; and schools with people, 0 if the error is not known:
    # [place, group].
    within: Floats
    schools: Floats

    def minus(self, subtracted: ErrorParts) -> ErrorParts:
        """Return the parts of differences of means, of the same schools or others."""
        return ErrorParts(
            self.residuals - subtracted.residuals,
            self.between - subtracted.between,
            np.hypot(self.within, subtracted.within),
            np.minimum(self.schools, subtracted.schools),
        )

    def where(self, known: Mask) -> ErrorParts:
        """Return the parts without those of places and groups that are not known."""
        return self._replace(schools=np.where(known, self.schools, 0.0))


@dataclass(frozen=True)
class Clusters:
    """The place of each school, by its number."""

    place: Integers
    places: int

    def add_up(self, numbers: Floats) -> Floats:
        """Return the sums of schools: [place, group] of [school, group]."""
        total = np.zeros((self.places, numbers.shape[1]))
        np.add.at(total, self.place, numbers)
        return total

    def parts(
        self, people: Floats, points: Floats, between: float, within: float
    ) -> ErrorParts:
        """Return the parts of means of people.

        `people` and sums of their `points` are [school, group]; `between` and `within`
        are the deviations of schools, and of people at the same school. The former is
        0 if chance can explain that schools differ, of which few schools tell too
        little: then places of few schools have no error.
        """
        total = self.add_up(people)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = self.add_up(points) / total
            residuals = (points - people * means[self.place]) / total[self.place]
            shares = people / total[self.place]
            of_people = within / np.sqrt(total)
        schools = self.add_up((people > 0).astype(float))
        if not between:
            schools = np.where(schools >= FEWEST_SCHOOLS, schools, 0.0)
        return ErrorParts(
            np.where(people > 0, residuals, 0.0),
            between * np.where(people > 0, shares, 0.0),
            of_people,
            schools,
        )

    def change_parts(
        self,
        before: ErrorParts,
        now: ErrorParts,
        between: float,
        of_changes: float | None,
        shared: Floats | float = 0.0,
    ) -> ErrorParts:
        """Return the parts of changes of means between two rounds.

        Those of both rounds have 1 as deviation of schools. `between` is that of true
        means, and `of_changes` that of true changes of schools; None: too few schools
        were in both. With shares s and t of a school in both rounds, it adds
        τ² (t - s)² + s t δ² to the variance: what a school has in both cancels, as far
        as its shares are the same, and its change δ does not.
        """
        shares, shares_now = before.between, now.between
        schools = self.add_up((shares + shares_now > 0).astype(float))
        if of_changes is None:
            schools = np.where(schools >= FEWEST_SCHOOLS, schools, 0.0)
        variances = between**2 * (shares_now - shares) ** 2
        variances += shares * shares_now * (of_changes or 0.0) ** 2
        return ErrorParts(
            now.residuals - before.residuals,
            np.sqrt(variances),
            np.sqrt(difference_variance(now.within, before.within, shared)),
            np.where((before.schools > 0) & (now.schools > 0), schools, 0.0),
        )

    def errors(self, parts: ErrorParts) -> Floats:
        """Return the standard errors in points; NaN where they are not known."""
        count = parts.schools
        with np.errstate(divide="ignore", invalid="ignore"):
            sandwich = self.add_up(parts.residuals**2) * count / (count - 1)
            model = self.add_up(parts.between**2) + parts.within**2
        variance = np.where(count >= FEWEST_SCHOOLS, sandwich, model)
        is_between = (count >= FEWEST_SCHOOLS) & (count < ENOUGH_SCHOOLS)
        variance = np.where(is_between, np.maximum(sandwich, model), variance)
        return np.asarray(np.sqrt(np.where(count > 1, variance, np.nan)))


def difference_variance(
    error: Floats, another: Floats, shared: Floats | float
) -> Floats:
    """Return the variance of a difference; `shared` is the correlation of the errors.

    Above 0 while that is below 1, and infinite where an error is.
    """
    known = np.isfinite(error) & np.isfinite(another)
    both = np.multiply(error, another, out=np.zeros(known.shape), where=known)
    return np.asarray(error**2 + another**2 - 2 * shared * both)


def mean_parts(measures: Sequence[tuple[ErrorParts, bool]]) -> ErrorParts:
    """Return the parts of the means of measures.

    Each comes with whether high values are good. True differences of measures go
    together fully here, which makes the error of few schools the largest.
    """
    all_parts = [parts for parts, _way in measures]
    signs = [1 if is_positive else -1 for _parts, is_positive in measures]
    residuals = [
        sign * parts.residuals for sign, parts in zip(signs, all_parts, strict=True)
    ]
    return ErrorParts(
        np.mean(residuals, axis=0),
        np.mean([parts.between for parts in all_parts], axis=0),
        np.mean([parts.within for parts in all_parts], axis=0),
        np.min([parts.schools for parts in all_parts], axis=0),
    )


def with_essentials(
    by_measure: Mapping[str, ErrorParts], content: Measures
) -> dict[str, ErrorParts]:
    """Add the essentials of which all measures have parts."""
    by_name = dict(by_measure)
    for essential in content["essentials"]:
        measures = [
            measure
            for measure in content["measures"]
            if measure["essential"] == essential["name"]
        ]
        if measures and all(measure["name"] in by_measure for measure in measures):
            by_name[essential["name"]] = mean_parts(
                [
                    (by_measure[measure["name"]], measure["direction"] == "positive")
                    for measure in measures
                ]
            )
    return by_name
