"""Add up the published scores of schools, for their district and the state.

An essential is the mean of the measures of its place, and tells nothing more than they
do. Answers are added up by `reports.results.sums`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from reports.scores.clusters import Clusters, ErrorParts, with_essentials
from reports.scores.scale import rounded
from reports.scores.shrinkage import Shrinkage, shared_error
from reports.scores.visible import (
    BenchmarkKey,
    Scores,
    VisibleScore,
    essential_of,
    measures_in,
)
from survey.instrument.definitions.schema import Measures


@dataclass
class MeasureSum:
    """The scores of schools on a measure, weighted by their people."""

    weight: int = 0
    points: float = 0.0
    # The squares of the weighted errors; None if a school has no error.
    squares: float | None = 0.0
    benchmarks: frozenset[BenchmarkKey] = frozenset()
    shrinkage: Shrinkage | None = None
    # Number of the school -> people and points.
    schools: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, score: VisibleScore, school: int) -> None:
        """Add a school, as its answers alone say: the sum is drawn for itself."""
        score = score.of_all_schools or score
        weight, (points, error) = score.people or 0, score.of_answers
        self.schools[school] = weight, points
        self.weight += weight
        self.points += weight * points
        self.benchmarks |= score.benchmarks
        self.shrinkage = score.shrinkage
        if error is None or self.squares is None:
            self.squares = None
        else:
            self.squares += (weight * error) ** 2

    def error_parts(self, clusters: Clusters) -> ErrorParts:
        people, points = np.zeros((2, len(clusters.place), 1))
        for school, (weight, score) in self.schools.items():
            people[school], points[school] = weight, weight * score
        between, within = 0.0, 0.0
        if self.shrinkage:
            between, within = self.shrinkage.between, self.shrinkage.within
        return clusters.parts(people, points, between, within)

    def total(self, school_error: float | None) -> VisibleScore | None:
        if not self.weight:
            return None
        error = None
        if self.squares is not None:
            error = math.sqrt(self.squares) / self.weight
        return VisibleScore.drawn(
            rounded(self.points / self.weight),
            error,
            benchmarks=self.benchmarks,
            people=self.weight,
            shrinkage=self.shrinkage,
            school_error=school_error,
        )


@dataclass
class SumOfScores:
    """The published scores of schools together."""

    content: Measures
    schools: int = 0
    by_measure: defaultdict[str, MeasureSum] = field(
        default_factory=lambda: defaultdict(MeasureSum)
    )
    # Of two measures of an essential: the covariances of the weighted errors.
    shared: defaultdict[tuple[str, str], float] = field(
        default_factory=lambda: defaultdict(float)
    )

    def add(self, scores: Scores) -> None:
        """Add a school."""
        for measure in self.content["measures"]:
            if measure["name"] in scores:
                total, score = self.by_measure[measure["name"]], scores[measure["name"]]
                if score:
                    total.add(score, self.schools)
        self.schools += 1
        for essential in self.content["essentials"]:
            self._add_shared_errors(essential["name"], scores)

    def _add_shared_errors(self, essential: str, scores: Scores) -> None:
        errors, weighted = [], {}
        for measure in measures_in(self.content, essential):
            score = scores.get(measure["name"])
            if score and (error := score.of_answers[1]) is not None:
                errors.append(error)
                _points, error_of_sum = (score.of_all_schools or score).of_answers
                people = score.people or 0
                weighted[measure["name"]] = people * (error_of_sum or 0.0)
        of_essential = scores.get(essential)
        of_mean = of_essential.of_answers[1] if of_essential else None
        shared = shared_error(errors, of_mean)
        for (first, error), (second, another) in combinations(weighted.items(), 2):
            self.shared[first, second] += shared * error * another

    def scores(self) -> Scores:
        by_school = self._school_errors()
        scores = {
            name: total.total(by_school.get(name))
            for name, total in self.by_measure.items()
        }
        for essential in self.content["essentials"]:
            names = [
                measure["name"]
                for measure in measures_in(self.content, essential["name"])
            ]
            if names and scores.keys() >= set(names):
                scores[essential["name"]] = self._essential(
                    essential["name"], scores, by_school.get(essential["name"])
                )
        return scores

    def _school_errors(self) -> dict[str, float]:
        """Return the standard errors by school, where several are added up."""
        clusters = Clusters(np.zeros(self.schools, int), 1)
        by_measure = {
            name: total.error_parts(clusters) for name, total in self.by_measure.items()
        }
        errors = {
            name: float(clusters.errors(parts)[0, 0])
            for name, parts in with_essentials(by_measure, self.content).items()
        }
        return {name: error for name, error in errors.items() if math.isfinite(error)}

    def _essential(
        self, name: str, scores: Scores, school_error: float | None
    ) -> VisibleScore | None:
        """Return the mean of its measures; None if one of them is hidden."""
        measures = measures_in(self.content, name)
        known = [
            (score, measure["direction"] == "positive")
            for measure in measures
            if (score := scores[measure["name"]])
        ]
        if len(known) < len(measures):
            return None
        error = self._essential_error([measure["name"] for measure in measures])
        return essential_of(known, error, school_error=school_error)

    def _essential_error(self, measures: Sequence[str]) -> float | None:
        variance = 0.0
        for name in measures:
            total = self.by_measure[name]
            if total.squares is None:
                return None
            variance += total.squares / total.weight**2
        for first, second in combinations(measures, 2):
            weights = self.by_measure[first].weight * self.by_measure[second].weight
            variance += 2 * self.shared[first, second] / weights
        return math.sqrt(max(variance, 0.0)) / len(measures)
