"""Add up what is published of schools, for their district and the state.

Such a sum tells nothing more than its parts. With other schools in it, the answers of
a school without a report could be calculated: all minus the published ones.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace

from reports.results.reading import ItemDistribution
from reports.results.visible import VisibleGroup
from reports.scores.scale import rounded
from reports.scores.visible import Scores, VisibleScore

NUMBERS = ("answered", "skipped", "not_applicable", "not_reached")


@dataclass
class ScoreSum:
    """The scores of schools, weighted by their people."""

    weight: int = 0
    points: float = 0.0
    # The squares of the weighted errors; None if a school has no error.
    squares: float | None = 0.0
    benchmarks: frozenset[int] = frozenset()

    def add(self, score: VisibleScore, weight: int) -> None:
        self.weight += weight
        self.points += weight * score.score
        self.benchmarks |= score.benchmarks
        if score.error is None or self.squares is None:
            self.squares = None
        else:
            self.squares += (weight * score.error) ** 2

    def total(self) -> VisibleScore | None:
        if not self.weight:
            return None
        error = None
        if self.squares is not None:
            error = math.sqrt(self.squares) / self.weight
        score = rounded(self.points / self.weight)
        return VisibleScore(score, self.benchmarks, error=error)


@dataclass
class SumOfSchools:
    """The published answers and scores of schools together."""

    group: VisibleGroup | None = None
    items: dict[str, ItemDistribution] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    by_score: defaultdict[str, ScoreSum] = field(
        default_factory=lambda: defaultdict(ScoreSum)
    )

    def add(self, group: VisibleGroup, scores: Scores) -> None:
        """Add a school. An item that it does not show in full is left out of it."""
        before = self.group or replace(group, people=0, finished=0)
        self.group = replace(
            before,
            people=before.people + group.people,
            finished=before.finished + group.finished,
        )
        self.hidden.update(group.hidden_items, group.hidden_options)
        for name, item in group.items.items():
            if name not in group.hidden_options:
                self._add_item(name, item)
        for name, score in scores.items():
            total = self.by_score[name]
            if score:
                total.add(score, score.people or group.people)

    def _add_item(self, name: str, item: ItemDistribution) -> None:
        total = self.items.get(name)
        if total is None:
            self.items[name] = replace(item, values=dict(item.values))
            return
        for number in NUMBERS:
            setattr(total, number, getattr(total, number) + getattr(item, number))
        for value, people in item.values.items():
            total.values[value] = total.values.get(value, 0) + people

    def figures(self) -> tuple[VisibleGroup, Scores] | None:
        """Return the sums; None without a school."""
        if self.group is None:
            return None
        group = replace(
            self.group,
            items=self.items,
            hidden_items=sorted(self.hidden - self.items.keys()),
            hidden_options={},
            left_out=0,
        )
        scores = {name: total.total() for name, total in self.by_score.items()}
        return group, scores
