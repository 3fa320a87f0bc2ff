"""Describe the tables that are published together for one administration."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]

EVERYONE = 0
ROOT = -1
UNKNOWN = -1


@dataclass(frozen=True)
class PlaceTree:
    """The state, its districts and their schools; a parent comes before its children.

    `parents` has the position of each place's parent, -1 for the first place.
    """

    parents: Integers

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def depths(self) -> Integers:
        depths = np.zeros(len(self), dtype=np.int64)
        for place in range(1, len(self)):
            depths[place] = depths[self.parents[place]] + 1
        return depths

    @cached_property
    def leaves(self) -> Integers:
        """The places without places below, in which people are counted."""
        inner = np.zeros(len(self), dtype=bool)
        inner[self.parents[1:]] = True
        return np.flatnonzero(~inner)

    @cached_property
    def by_depth(self) -> list[Integers]:
        return [
            np.flatnonzero(self.depths == depth)
            for depth in range(int(self.depths.max()) + 1)
        ]

    def path(self, place: int) -> list[int]:
        """Return the place, its parent, …, and the first place."""
        path = []
        while place != ROOT:
            path.append(place)
            place = int(self.parents[place])
        return path

    def leaves_below(self, place: int) -> Integers:
        """Return the leaves in a place; all of them for ROOT."""
        if place == ROOT:
            return self.leaves
        return self._leaves_below[place]

    def lowest_common(self, ones: Integers, others: Integers) -> Integers:
        """Return the lowest place that contains both, for each two places."""
        common = np.full(len(ones), ROOT)
        for depth in range(len(self.by_depth)):
            one, other = self._ancestors[ones, depth], self._ancestors[others, depth]
            common = np.where((one == other) & (one != ROOT), one, common)
        return common

    @cached_property
    def _ancestors(self) -> Integers:
        """The place of each depth that contains a place, [place, depth]."""
        ancestors = np.full((len(self), len(self.by_depth)), ROOT)
        for place in range(len(self)):
            if place:
                ancestors[place] = ancestors[self.parents[place]]
            ancestors[place, self.depths[place]] = place
        return ancestors

    def below(self, place: int) -> Integers:
        """Return the place and all places below it."""
        inside = np.zeros(len(self), dtype=bool)
        inside[place] = True
        for other in range(place + 1, len(self)):
            inside[other] = inside[self.parents[other]]
        return np.flatnonzero(inside)

    @cached_property
    def _leaves_below(self) -> list[Integers]:
        below: list[list[int]] = [[] for _ in range(len(self))]
        for leaf in self.leaves:
            for place in self.path(int(leaf)):
                below[place].append(int(leaf))
        return [np.array(leaves) for leaves in below]


@dataclass(frozen=True)
class GroupCounts:
    """The number of people who answered, for each place and group.

    Column 0 of `people` is everyone; the columns of each attribute in `attributes`
    add up to it, so people without a value have a column of their own. `invited`
    are public numbers, -1 for groups without one. `without_report` marks places that
    have no report, because too few of their people answered.
    """

    attributes: tuple[tuple[int, ...], ...]
    people: Integers
    invited: Integers
    without_report: Mask

    @cached_property
    def most_people(self) -> Integers:
        """What the public numbers of invited people allow at most.

        Without one, the number for everyone in the place does, or all people. Open
        codes and changes of rosters can make it too low, so that it allows nothing.
        """
        most = self.invited
        for otherwise in (most[:, [EVERYONE]], self.people[0, EVERYONE]):
            most = np.where(most == UNKNOWN, otherwise, most)
        return np.maximum(most, self.people)

    def attribute_of(self, column: int) -> tuple[int, ...]:
        """Return the columns of the attribute that this one belongs to."""
        for attribute in self.attributes:
            if column in attribute:
                return attribute
        return ()


@dataclass(frozen=True)
class Decision:
    """What is hidden: groups[place, column] and items[item][place, column].

    A hidden group has no number of people, no mean and no item. An item can be
    hidden in a group that is shown. `escalated` names items that could be protected
    only by giving up a whole attribute or the item.
    """

    groups: Mask
    items: dict[str, Mask] = field(default_factory=dict)
