"""Hide further cells until moves protect every hidden one.

A greedy search: for each cell that lacks candidates, the cheapest move that would
give them is made possible by hiding its other cells. Hiding more never takes a move
away, so protected cells stay protected. Cost is the number of cells that are hidden,
and the people in them where this is equal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reports.suppression.moves import Kind, Ranges, Shape
from reports.suppression.tables import (
    EVERYONE,
    ROOT,
    Floats,
    GroupCounts,
    Integers,
    Mask,
    PlaceTree,
)

# Up to here every place is tried as a partner, beyond only near ones that suffice.
SMALL_TREE = 40
MOST_VALUES_OF_ATTRIBUTE = 3


@dataclass(frozen=True)
class Extension:
    """Cells to hide, what this costs, and how many candidates it adds."""

    cells: tuple[tuple[int, int], ...]
    cost: float
    progress: int
    suffices: bool


class Search(ABC):
    """The cells hidden so far in one table, and what they still need."""

    def __init__(self, tree: PlaceTree, groups: GroupCounts, hidden: Mask) -> None:
        self.tree = tree
        self.groups = groups
        self.hidden = hidden.copy()
        self.ranges = Ranges(tree, groups.attributes)
        self.occupied = (groups.people > 0) | hidden

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """The moves that further hidden cells make possible."""

    @abstractmethod
    def free(self) -> tuple[Integers, Integers]:
        """Return how far each cell can rise and fall, [place, column, category]."""

    @abstractmethod
    def needed(self) -> Integers:
        """Return by how much each hidden cell has to vary at least."""

    @abstractmethod
    def give_up(self, place: int, column: int) -> None:
        """Hide more than one move, because no move helps this cell."""

    def is_safe(self) -> bool:
        rise, fall = self.free()
        return not (self.needed() > rise + fall).any()

    def run(self) -> Mask:
        while True:
            rise, fall = self.free()
            needed = self.needed()
            short = (needed > rise + fall).any(axis=2)
            cells = np.argwhere(short)
            if not len(cells):
                return self.hidden
            people = self.groups.people[cells[:, 0], cells[:, 1]]
            changed: set[tuple[int, tuple[int, ...]]] = set()
            for place, column in cells[np.argsort(people, kind="stable")].tolist():
                key = (place, self.groups.attribute_of(column))
                # Its candidates are counted again before more is hidden for it.
                if key in changed or (changed and len(self.tree) <= SMALL_TREE):
                    continue
                changed.add(key)
                current = (rise[place, column], fall[place, column])
                best = self.best_extension(
                    place, column, current, needed[place, column]
                )
                if best is None:
                    self.give_up(place, column)
                else:
                    for cell in best.cells:
                        self.hidden[cell] = True

    def best_extension(
        self,
        place: int,
        column: int,
        current: tuple[Integers, Integers],
        needed: Integers,
    ) -> Extension | None:
        best: Extension | None = None
        small = len(self.tree.leaves) <= SMALL_TREE
        for leaf in self.leaves_to_change(place, column):
            for shape in self.shapes_of(leaf, column):
                for meeting in [*self.tree.path(place)[1:], ROOT]:
                    found = self.evaluate(
                        place, leaf, shape, meeting, (*current, needed)
                    )
                    best = better(best, found)
                    if found and found.suffices and not small:
                        break
        return best

    def leaves_to_change(self, place: int, column: int) -> list[int]:
        """Return a leaf, or of a place above leaves those that cost the least."""
        leaves = self.tree.leaves_below(place)
        leaves = leaves[self.occupied[leaves, column]]
        if len(leaves) <= 1:
            return [int(leaf) for leaf in leaves]
        order = np.lexsort(
            (self.groups.people[leaves, column], ~self.hidden[leaves, column])
        )
        return [int(leaf) for leaf in leaves[order[:MOST_VALUES_OF_ATTRIBUTE]]]

    def shapes_of(self, leaf: int, column: int) -> Iterator[Shape]:
        """Yield the moves by which a leaf can gain a person in this column."""
        values = [
            [value for value in attribute if self.occupied[leaf, value]]
            for attribute in self.groups.attributes
        ]
        for attribute in values:
            if column in attribute:
                for other in attribute:
                    if other != column:
                        yield Shape((column,), (other,))
        if column != EVERYONE and not self.hidden[leaf, EVERYONE]:
            return
        shape = [EVERYONE]
        choices: list[list[int]] = []
        for attribute in values:
            ordered = sorted(
                attribute, key=lambda value: -int(self.groups.people[leaf, value])
            )[:MOST_VALUES_OF_ATTRIBUTE]
            choices.append([column] if column in attribute else ordered)
        if all(choices):
            for rank in range(max(map(len, choices), default=1)):
                yield Shape(
                    (*shape, *(each[min(rank, len(each) - 1)] for each in choices))
                )

    def evaluate(
        self,
        place: int,
        leaf: int,
        shape: Shape,
        meeting: int,
        candidates: tuple[Integers, Integers, Integers],
    ) -> Extension | None:
        """Return the cheapest extension for moves of a leaf that show up to a place."""
        rise, fall, needed = candidates
        own = [
            each
            for each in self.tree.path(leaf)
            if meeting == ROOT or self.tree.depths[each] > self.tree.depths[meeting]
        ]
        columns = shape.columns
        open_cells = self.occupied[:, columns] & ~self.hidden[:, columns]
        price = (open_cells * (1 + self.weights[:, columns])).sum(axis=1)
        forward = self.kind.forward(shape, np.array([leaf]))
        backward = self.kind.backward(shape, np.array([leaf]))
        cost = price[own].sum()
        if meeting == ROOT:
            partners, costs = np.array([ROOT]), np.array([0.0])
            up, down = forward.max(axis=2), backward.max(axis=2)
        else:
            partners = self.tree.leaves_below(meeting)
            top = own[-1]
            usable = self.occupied[partners][:, columns].all(axis=1)
            usable &= ~np.isin(partners, self.tree.leaves_below(top))
            partners = partners[usable]
            if not len(partners):
                return None
            costs = self.costs_up_to(partners, meeting, price)
            theirs = (
                self.kind.forward(shape, partners),
                self.kind.backward(shape, partners),
            )
            paid = (costs > 0)[:, None, None]
            with_hidden = [
                np.where(paid, one, 0) + np.where(paid, 0, one).sum(axis=0)
                for one in theirs
            ]
            up = np.minimum(forward, with_hidden[1]).max(axis=2)
            down = np.minimum(backward, with_hidden[0]).max(axis=2)
        reached = np.minimum(np.maximum(rise, up) + np.maximum(fall, down), needed)
        progress = (reached - np.minimum(rise + fall, needed)).sum(axis=1)
        complete = (reached == needed).all(axis=1)
        total = cost + costs
        if not (progress > 0).any():
            return None
        worth = np.where(complete, 1e6 - total, progress / (total + 1e-9))
        worth[(progress == 0) | (total == 0)] = -1
        chosen = int(worth.argmax())
        if worth[chosen] < 0:
            return None
        cells = [(each, column) for each in own for column in columns]
        if partners[chosen] != ROOT:
            for each in self.tree.path(int(partners[chosen])):
                if each == meeting:
                    break
                cells += [(each, column) for column in columns]
        return Extension(
            tuple(cell for cell in cells if self.occupied[cell]),
            float(total[chosen]),
            int(progress[chosen]),
            bool(complete[chosen]),
        )

    @property
    def weights(self) -> Floats:
        """A small price for people, so that of two cells the smaller one is hidden."""
        people = self.groups.people
        return people / (1000.0 * max(1, int(people[0, EVERYONE])))

    def costs_up_to(self, leaves: Integers, meeting: int, price: Floats) -> Floats:
        costs = price[leaves].astype(float)
        places = self.tree.parents[leaves]
        while (below := places != meeting).any():
            costs[below] += price[places[below]]
            places = np.where(below, self.tree.parents[places], places)
        return costs

    def drop_needless(self, primary: Mask) -> Mask:
        """Show cells again, largest first, as long as all others stay protected."""
        cells = np.argwhere(self.hidden & ~primary)
        people = self.groups.people[cells[:, 0], cells[:, 1]]
        for place, column in cells[np.argsort(-people, kind="stable")].tolist():
            self.hidden[place, column] = False
            if not self.is_safe():
                self.hidden[place, column] = True
        return self.hidden


def better(one: Extension | None, other: Extension | None) -> Extension | None:
    if one is None or other is None:
        return one or other
    if one.suffices != other.suffices:
        return one if one.suffices else other
    if one.suffices:
        return other if other.cost < one.cost else one
    return other if other.progress / other.cost > one.progress / one.cost else one
