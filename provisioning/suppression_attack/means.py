"""Bound hidden sums of measures from everything that is published of their means.

Published of each place are the scores on measures, which are means in whole points of
the scale. An essential is the mean of these whole points, and tells nothing more. Known
are also the scale, the mean of the benchmark, and how many people have a measure, in
hidden schools as well; with it a score bounds the sum of people's raw scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import floor

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from provisioning.suppression_attack.attacker import CANDIDATES, Outcome
from provisioning.suppression_attack.hierarchies import Hierarchy
from reports.scores.scale import HIGHEST, LOWEST, MIDDLE
from reports.suppression.results import counted_in_scores
from reports.suppression.tables import EVERYONE, Decision, Mask

Floats = NDArray[np.float64]

# Of a sum, so that rounding errors do not exclude the truth.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class PublishedMeans:
    """The scores of all places, of the schools that are counted in larger places.

    `shown` and `counted` are schools, [measure, school].
    """

    hierarchy: Hierarchy
    shown: Mask
    counted: Mask

    @classmethod
    def of(cls, hierarchy: Hierarchy, decision: Decision) -> PublishedMeans:
        """Publish as the product does."""
        leaves = hierarchy.tree.leaves
        counted = np.array(
            [
                counted_in_scores(
                    measure.people[leaves].astype(float),
                    decision.items[measure.item][leaves, EVERYONE],
                    hierarchy.minimum,
                )
                for measure in hierarchy.measures
            ]
        )
        return cls(hierarchy, counted, counted)

    @classmethod
    def unprotected(cls, hierarchy: Hierarchy) -> PublishedMeans:
        """Hide only the means of few people; everybody is in those of larger places."""
        leaves = hierarchy.tree.leaves
        everyone = hierarchy.groups.people[leaves, EVERYONE]
        people = np.array([one.people[leaves] for one in hierarchy.measures])
        shown = np.minimum(people, everyone) >= hierarchy.minimum
        return cls(hierarchy, shown, np.ones_like(shown))

    def attack(self) -> Outcome:
        """Count hidden sums with too few candidates, by integer programs."""
        outcome = Outcome()
        leaves = self.hierarchy.tree.leaves
        for number, measure in enumerate(self.hierarchy.measures):
            most = measure.most * measure.people[leaves]
            hidden = ~self.shown[number] & (most > 0)
            for school in np.flatnonzero(hidden).tolist():
                wanted = min(int(most[school]), CANDIDATES - 1)
                outcome.cells += 1
                outcome.implied += wanted < CANDIDATES - 1
                width = self.width(number * len(leaves) + school)
                outcome.narrowed += width < wanted
                outcome.recovered += width == 0
        return outcome

    def width(self, cell: int) -> int:
        """Return the difference of the largest and the smallest possible sum."""
        matrix, low, high = self.constraints
        if not matrix[:, cell].any():
            return int(self.most[cell])
        objective = np.zeros(len(self.most))
        objective[cell] = 1
        bounds = []
        for sign in (1, -1):
            result = milp(
                sign * objective,
                constraints=LinearConstraint(matrix, low, high),
                bounds=Bounds(0, self.most),
                integrality=np.ones(len(objective)),
                options={"time_limit": 60},
            )
            if result.x is None:
                raise RuntimeError(f"The published means contradict: {result.message}")
            # If the time was too short, the attacker knows the proven bound alone.
            bounds.append(sign * float(np.ceil(result.mip_dual_bound - TOLERANCE)))
        return round(bounds[1] - bounds[0])

    @cached_property
    def most(self) -> Floats:
        leaves = self.hierarchy.tree.leaves
        return np.concatenate(
            [one.most * one.people[leaves] for one in self.hierarchy.measures]
        ).astype(float)

    @cached_property
    def constraints(self) -> tuple[Floats, Floats, Floats]:
        """Return what is published: a row of factors of the sums, least and most."""
        tree, measures = self.hierarchy.tree, self.hierarchy.measures
        leaves = tree.leaves
        truth = np.array([one.sums[leaves] for one in measures])
        people = np.array([one.people[leaves] for one in measures])
        # The mean of the benchmark, which is known without rounding.
        centers = [
            truth[n, counted].sum() / max(people[n, counted].sum(), 1)
            for n, counted in enumerate(self.counted)
        ]
        rows: list[tuple[Floats, float, float]] = []
        for number, counted in enumerate(self.counted):
            row = np.zeros(truth.shape)
            row[number, counted] = 1
            whole = float(truth[number, counted].sum())
            rows.append((row.ravel(), whole, whole))
        for place in range(len(tree)):
            inside = np.isin(leaves, [place, *tree.below(place).tolist()])
            for number, measure in enumerate(measures):
                chosen = self.shown if place in leaves else self.counted
                schools = inside & chosen[number]
                count = int(people[number, schools].sum())
                if count < self.hierarchy.minimum:
                    continue
                factor = measure.points / count
                # Points are this row times the sums, and this constant.
                row = np.zeros(truth.shape)
                row[number, schools] = factor
                constant = MIDDLE - measure.points * centers[number]
                found = constant + float((row * truth).sum())
                score = floor(min(max(found, LOWEST), HIGHEST) + 0.5)
                least = score - 0.5 if score > LOWEST else -np.inf
                most = score + 0.5 if score < HIGHEST else np.inf
                rows.append((row.ravel(), least - constant, most - constant))
        factors, least_sums, most_sums = zip(*rows, strict=True)
        return (
            np.array(factors),
            np.array(least_sums) - TOLERANCE,
            np.array(most_sums) + TOLERANCE,
        )
