"""Describe the tables that are published together for one administration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from reports.suppression.dependent_groups import DependentGroups

Integers = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]

EVERYONE = 0
ROOT = -1
UNKNOWN = -1
# Numbers that each hidden one could be, at least.
CANDIDATES = 3


@dataclass(frozen=True)
class PlaceTree:
    """The state, its districts and their schools; a parent comes before its children.

    `parents` has the position of each place's parent, -1 for the first place.
    """

    parents: Integers

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def leaves(self) -> Integers:
        """The places without places below, in which people are counted."""
        inner = np.zeros(len(self), dtype=bool)
        inner[self.parents[1:]] = True
        return np.flatnonzero(~inner)

    @cached_property
    def levels(self) -> list[Integers]:
        """The places of each level, the schools first and the first place last."""
        depth = np.zeros(len(self), dtype=np.int64)
        for place in range(1, len(self)):
            depth[place] = depth[self.parents[place]] + 1
        return [np.flatnonzero(depth == each) for each in range(depth.max(), -1, -1)]

    def children(self, place: int) -> Integers:
        return self._children[place]

    def add_up(self, counts: Integers, level: Integers, counted: Mask) -> None:
        """Replace the rows of a level's places by the sums of their children's.

        Of those that are `counted`. Places without children stay as they are.
        """
        inner, below, starts = self._inner[int(level[0])]
        if len(inner):
            parts = counts[below]
            parts[~counted[below]] = 0
            counts[inner] = np.add.reduceat(parts, starts, axis=0)

    def below(self, place: int) -> Integers:
        """Return all places below this one."""
        inside = np.zeros(len(self), dtype=bool)
        inside[place] = True
        for descendant in range(place + 1, len(self)):
            inside[descendant] = inside[self.parents[descendant]]
        inside[place] = False
        return np.flatnonzero(inside)

    def leaves_of(self, place: int, counted: Mask) -> list[int]:
        """Return the leaves in a place's sums if these places are counted above."""
        children = self.children(place)
        if not len(children):
            return [place]
        parts = children[counted[children]].tolist()
        return [leaf for part in parts for leaf in self.leaves_of(part, counted)]

    @cached_property
    def _inner(self) -> dict[int, tuple[Integers, Integers, Integers]]:
        """Return what `add_up` needs of each level, by the level's first place.

        The places with children; their children, one place's after another's; and the
        position at which each place's children start.
        """
        of_levels: dict[int, tuple[Integers, Integers, Integers]] = {}
        for level in self.levels:
            inner = np.setdiff1d(level, self.leaves, assume_unique=True)
            children = [self.children(place) for place in inner.tolist()]
            starts = np.cumsum([0, *map(len, children[:-1])])
            below = np.concatenate([*children, np.zeros(0, dtype=np.int64)])
            of_levels[int(level[0])] = inner, below.astype(np.int64), starts
        return of_levels

    @cached_property
    def _children(self) -> list[Integers]:
        order = np.argsort(self.parents, kind="stable")
        starts = np.searchsorted(self.parents[order], np.arange(len(self) + 1))
        return [order[start:end] for start, end in pairwise(starts.tolist())]


@dataclass(frozen=True)
class GroupCounts:
    """The number of people who answered, for each place and group.

    Column 0 of `people` is everyone; the columns of each attribute in `attributes`
    add up to it, so people without a value have a column of their own. `invited`
    are public numbers, -1 for groups without one. Of groups in `without_rate`, response
    rates do not show how many have answered.
    """

    attributes: tuple[tuple[int, ...], ...]
    people: Integers
    invited: Integers
    without_rate: Mask | None = None

    def too_small(self, minimum: int) -> Mask:
        """Return the groups that are hidden whatever the others are."""
        small = self.people < minimum
        if self.without_rate is not None:
            small |= self.without_rate
        return small & (self.people > 0)

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

    @cached_property
    def present_and_absent(self) -> Integers:
        """Numbers of people who answered, and who did not: [place, column, 2].

        Where no number of invited people is public, as many as could be.
        """
        absent = np.where(
            self.invited == UNKNOWN,
            self.people[0, EVERYONE],
            self.most_people - self.people,
        )
        return np.stack([self.people, absent], axis=2)


@dataclass(frozen=True)
class HiddenCells:
    """Hidden groups, and items that are hidden in more groups than these.

    [place, column]
    """

    groups: Mask
    items: Mapping[str, Mask] = field(default_factory=dict)

    def of_item(self, name: str) -> Mask:
        return self.items.get(name, self.groups)

    def intersection(self, cells: HiddenCells, where: Mask) -> HiddenCells:
        names = self.items.keys() | cells.items.keys()
        return HiddenCells(
            self.groups & cells.groups & where,
            {name: self.of_item(name) & cells.of_item(name) & where for name in names},
        )


@dataclass(frozen=True)
class EarlierSuppression:
    """What readers have seen hidden before, of the same people.

    If further parts of a sum have to be hidden, `preferred` ones are before others.
    `forced` ones are hidden in any case. Places that were undivided by an attribute
    stay so, and so do those that were `divided`: [place, attribute]. `summed` are the
    schools of sums that undivided places have shown, by place and attribute; -1 if it
    is gone.
    """

    preferred: HiddenCells
    forced: HiddenCells
    undivided: Mask
    divided: Mask
    summed: Mapping[tuple[int, int], frozenset[int]] = field(default_factory=dict)
    is_known: bool = True

    @classmethod
    def none(cls, groups: GroupCounts) -> EarlierSuppression:
        places = len(groups.people)
        nothing = HiddenCells(np.zeros(groups.people.shape, dtype=bool))
        unknown = np.zeros((places, len(groups.attributes)), dtype=bool)
        return cls(nothing, nothing, unknown, unknown, is_known=False)


@dataclass(frozen=True)
class Decision:
    """What is hidden: groups[place, column] and items[item][place, column].

    A hidden group has no number of people, no mean and no item. An item can be
    hidden in a group that is shown.

    `counted[place, attribute]` tells whether the people of a place are a part of the
    next larger place's figures by an attribute, `counted_items` the same for an item;
    `counted_all[place]` and `counted_all_items` tell it of the figures of everyone.
    `undivided[place, attribute]` are places below which nothing is shown by this
    attribute, so that fewer people are left out. `summed[place, attribute]` are the
    schools that were in the figures of such a place when they were shown last.
    """

    groups: Mask
    counted: Mask
    undivided: Mask
    counted_all: Mask
    items: dict[str, Mask] = field(default_factory=dict)
    counted_items: dict[str, Mask] = field(default_factory=dict)
    counted_all_items: dict[str, Mask] = field(default_factory=dict)
    summed: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict)

    def published(
        self,
        tree: PlaceTree,
        groups: GroupCounts,
        counts: Integers,
        item: str | None = None,
    ) -> Integers:
        """Return `counts` [place, column, …] without the people who are left out.

        Counts of an item, or of people without one.
        """
        counted = self.counted if item is None else self.counted_items[item]
        everyone = self.counted_all if item is None else self.counted_all_items[item]
        columns = [([EVERYONE], everyone)]
        columns += [
            (list(attribute), counted[:, number])
            for number, attribute in enumerate(groups.attributes)
        ]
        published = counts.copy()
        for attribute, is_counted in columns:
            part = published[:, attribute]
            for level in tree.levels[1:]:
                tree.add_up(part, level, is_counted)
            published[:, attribute] = part
        return published


@dataclass(frozen=True)
class ReleasedTables:
    """The places and groups that are published together, and what hides some of them.

    `dependent` groups, and items in them, are hidden because sums of overlapping groups
    would tell of a few people.
    """

    tree: PlaceTree
    groups: GroupCounts
    minimum: int
    earlier: EarlierSuppression
    dependent: DependentGroups | None = None


@dataclass(frozen=True)
class ItemTables:
    """The tables of one item: its own, and one for each option."""

    counts: Mapping[str, Integers]
    # [place, column]
    answered: Integers
    # Groups in which the item would tell of a few people: [place, column].
    dependent: Mask
