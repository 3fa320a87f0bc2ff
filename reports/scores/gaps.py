"""Compare groups of one attribute: gaps with intervals, and what may be said of them.

Calculated from the scores that are shown, so that gaps tell nothing more. Numbers in,
numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from reports.scores.comparisons import significant
from reports.scores.scale import CERTAIN
from reports.scores.visible import ROUNDING, VisibleScore

# Standardised differences: below the first they are small, from the second on large
# (Cohen 1988).
SMALL, LARGE = 0.2, 0.5


class Size(Enum):
    SMALL, MODERATE, LARGE = range(3)
    # It is not known how far people differ.
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference of a group from another one, or from all others together."""

    group: str
    # "" for all other groups together.
    compared: str
    # In points, and its standard error.
    points: float
    error: float
    # The standard deviation of people; None if it is not known.
    deviation: float | None
    # Whether it is more than chance, among all gaps that are shown together.
    is_certain: bool = False

    @property
    def interval(self) -> tuple[int, int]:
        """Return the ends of the 95 % interval, in whole points."""
        margin = CERTAIN * self.error
        return round(self.points - margin), round(self.points + margin)

    @property
    def size(self) -> Size:
        return self._size_of(self.points)

    @property
    def is_at_most_small(self) -> bool:
        """Test that the whole interval is that of small gaps."""
        margin = CERTAIN * self.error
        return self._size_of(abs(self.points) + margin) is Size.SMALL

    @property
    def chance(self) -> float:
        """Return how probable such a gap is if there is none (two-sided)."""
        return math.erfc(abs(self.points) / self.error / math.sqrt(2))

    def _size_of(self, points: float) -> Size:
        if not self.deviation:
            return Size.UNKNOWN
        share = abs(points) / self.deviation
        if share < SMALL:
            return Size.SMALL
        return Size.MODERATE if share < LARGE else Size.LARGE


def gaps_between(
    scores: Mapping[str, VisibleScore], deviation: float | None
) -> list[Gap]:
    """Return the gaps between the groups of one attribute.

    Of two groups, the first from the second; of more, each from the others together,
    by their numbers of people. Groups without an error have none.
    """
    known = {
        name: score
        for name, score in scores.items()
        if score.of_answers[1] is not None and score.people
    }
    names = list(known)
    if len(names) < 2:
        return []
    if len(names) == 2:
        pairs: list[tuple[str, str, Sequence[str]]] = [(names[0], names[1], names[1:])]
    else:
        pairs = [(name, "", [each for each in names if each != name]) for name in names]
    gaps = []
    for name, compared, rest in pairs:
        group, compared_groups = known[name], [known[each] for each in rest]
        mean = _mean(compared_groups)
        # Scores are rounded, so that the error is never 0.
        error = math.hypot(_gap_error(group, compared_groups), ROUNDING)
        points = group.of_answers[0] - mean
        gaps.append(Gap(name, compared, points, error, deviation))
    return gaps


def _mean(groups: Sequence[VisibleScore]) -> float:
    """Return the mean of the people of several groups."""
    weights = [group.people or 0 for group in groups]
    points = sum(
        weight * group.of_answers[0]
        for weight, group in zip(weights, groups, strict=True)
    )
    return points / sum(weights)


def _gap_error(group: VisibleScore, compared: Sequence[VisibleScore]) -> float:
    """Return the standard error of a group's difference from others together.

    At a larger place, the groups are of the same schools, whose differences are in
    both: then it is that by school, unless that of independent people is larger. It is
    known of all groups together only; without one of them, both means have theirs.
    """
    by_school, groups = group.gap or (0.0, 0)
    is_known = groups == len(compared) + 1
    errors = [
        (each.error_of_people if is_known else each.of_answers[1]) or 0.0
        for each in (group, *compared)
    ]
    weights = [each.people or 0 for each in compared]
    weighted = (
        weight * error for weight, error in zip(weights, errors[1:], strict=True)
    )
    independent = math.hypot(errors[0], math.hypot(*weighted) / sum(weights))
    return max(independent, by_school) if is_known else independent


def judged(gaps: Sequence[Gap]) -> list[Gap]:
    """Say of all gaps that are shown together which ones are more than chance."""
    certain = significant({number: gap.chance for number, gap in enumerate(gaps)})
    return [
        replace(gap, is_certain=number in certain) for number, gap in enumerate(gaps)
    ]
