"""Find how far hidden numbers could differ without changing a published number.

A *move* takes people, or answers, from some hidden cells to others so that all
published sums stay the same. If moves can change a hidden number to two other
values, an attacker has at least three candidates for it, whatever method is used.
The moves are:

* In a school, a person changes from grade 5 to grade 4, and in another school of
  the same district one changes from 4 to 5 (`Shape((4,), (5,))`).
* A person changes the school, and is in the same groups there (`Shape((everyone, 4,
  female), ())`), if the totals of both schools are hidden.

Between schools of two districts the numbers of both districts change as well, so
these have to be hidden, up to the place that both are in. Where the numbers of the
first place are hidden too, no second school is needed.

With hidden bases, a person moves together with the answer. Where bases are known,
two people exchange their answers in each place: one answer of a category for one of
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, product

import numpy as np

from reports.suppression.tables import EVERYONE, ROOT, Integers, Mask, PlaceTree

# More than any move has to change.
PLENTY = 1 << 40
UNLIMITED = 1 << 60
MOST_SHAPES_OF_EVERYONE = 30
MOST_PARTNERS = 6
# Changes of a number: with its own value, three candidates.
ENOUGH = 2


@dataclass(frozen=True)
class Shape:
    """Columns that gain a person in a place, and columns that lose one."""

    gaining: tuple[int, ...]
    losing: tuple[int, ...] = ()

    @property
    def columns(self) -> list[int]:
        return [*self.gaining, *self.losing]


class People:
    """Moves of people, with one answer each: bases change.

    `bases` stay within `fewest` and `most`, [place, column].
    """

    def __init__(self, bases: Integers, fewest: Integers, most: Integers) -> None:
        self.removable = np.maximum(bases - fewest, 0)[:, :, None]
        self.room = np.maximum(most - bases, 0)

    def forward(self, shape: Shape, leaves: Integers) -> Integers:
        """Return how often each leaf can make the move, [leaf, category, 1]."""
        return self._times(shape.gaining, shape.losing, leaves)

    def backward(self, shape: Shape, leaves: Integers) -> Integers:
        return self._times(shape.losing, shape.gaining, leaves)

    def _times(
        self, gaining: Sequence[int], losing: Sequence[int], leaves: Integers
    ) -> Integers:
        times = np.full((len(leaves), 1), PLENTY)
        for column in losing:
            times = np.minimum(times, self.removable[leaves, column])
        for column in gaining:
            times = np.minimum(times, self.room[leaves, column][:, None])
        return times[:, :, None]


class Answers:
    """Moves of answers between people who stay where they are: bases are kept."""

    def __init__(self, counts: Integers) -> None:
        self.counts = counts
        categories = counts.shape[2]
        # An answer is never exchanged for one of the same category.
        self.same = np.eye(categories, dtype=bool)

    def forward(self, shape: Shape, leaves: Integers) -> Integers:
        """Return how often each leaf can make the move, [leaf, gained, given]."""
        size = self.counts.shape[2]
        times = np.full((len(leaves), size, size), PLENTY)
        for column in shape.losing:
            times = np.minimum(times, self.counts[leaves, column][:, :, None])
        for column in shape.gaining:
            times = np.minimum(times, self.counts[leaves, column][:, None, :])
        times[:, self.same] = 0
        return times

    def backward(self, shape: Shape, leaves: Integers) -> Integers:
        return self.forward(shape, leaves).transpose(0, 2, 1)

    def sources(self, shape: Shape, leaves: Integers) -> tuple[Integers, Integers]:
        """Return the answers that a forward and a backward move take, by category."""
        taken = []
        for columns in (shape.losing, shape.gaining):
            times = np.full((len(leaves), self.counts.shape[2]), PLENTY)
            for column in columns:
                times = np.minimum(times, self.counts[leaves, column])
            taken.append(times)
        return taken[0], taken[1]


Kind = People | Answers


@dataclass(frozen=True)
class PairMoves:
    """How often people can move in one leaf, and back in the other, at most twice."""

    shape: Shape
    meeting: Integers
    leaves: Integers
    partners: Integers | None
    forward: Integers
    backward: Integers

    def limited_by(self, items: Sequence[Integers]) -> PairMoves:
        forward, backward = self.forward, self.backward
        for counts in items:
            one, other = self._common_answers(counts)
            forward = np.minimum(forward, one.sum(axis=1))
            backward = np.minimum(backward, other.sum(axis=1))
        return replace(self, forward=forward, backward=backward)

    def times(self, counts: Integers) -> tuple[Integers, Integers]:
        """Return how often people with each answer can move, [leaf, category]."""
        forward, backward = self._common_answers(counts)
        return (
            np.minimum(forward, self.forward[:, None]),
            np.minimum(backward, self.backward[:, None]),
        )

    def _common_answers(self, counts: Integers) -> tuple[Integers, Integers]:
        forward = np.full((len(self.leaves), counts.shape[2]), PLENTY)
        backward = forward.copy()
        for leaves, losing, gaining in (
            (self.leaves, self.shape.losing, self.shape.gaining),
            (self.partners, self.shape.gaining, self.shape.losing),
        ):
            if leaves is None:
                continue
            for column in losing:
                forward = np.minimum(forward, counts[leaves, column])
            for column in gaining:
                backward = np.minimum(backward, counts[leaves, column])
        return forward, backward


def pairs(
    leaves: Integers, meeting: Integers, people: Integers
) -> tuple[Integers, Integers]:
    """Return positions of leaves that meet: each with the largest ones there."""
    ones, others = [], []
    order = np.lexsort((-people, meeting))
    places, starts = np.unique(meeting[order], return_index=True)
    for place, members in zip(places, np.split(order, starts[1:]), strict=True):
        if place == ROOT:
            continue
        for position, member in enumerate(members):
            partners = members[:position][:MOST_PARTNERS]
            if position + 1 < len(members) and len(partners) < MOST_PARTNERS:
                partners = np.append(partners, members[position + 1])
            ones += [member] * len(partners)
            others += partners.tolist()
    return np.array(ones, dtype=np.int64), np.array(others, dtype=np.int64)


class Ranges:
    """How far each hidden number can rise and fall, as far as moves have shown."""

    def __init__(self, tree: PlaceTree, attributes: Sequence[Sequence[int]]) -> None:
        self.tree = tree
        self.attributes = attributes

    def find(
        self, kind: Answers, hidden: Mask, counts: Integers
    ) -> tuple[Integers, Integers]:
        """Return `rise` and `fall`, [place, column, category]."""
        rise, fall = np.zeros_like(counts), np.zeros_like(counts)
        for shape in self.shapes(hidden, counts):
            self._add(kind, shape, hidden, rise, fall)
        return rise, fall

    def find_with_people(
        self,
        moves: Sequence[PairMoves],
        counts: Integers,
    ) -> tuple[Integers, Integers]:
        """Return `rise` and `fall` of one item by moves of people."""
        rise, fall = np.zeros_like(counts), np.zeros_like(counts)
        for move in moves:
            forward, backward = move.times(counts)
            for leaves, up, down in (
                (move.leaves, forward, backward),
                (move.partners, backward, forward),
            ):
                if leaves is None:
                    continue
                places, meeting = leaves, move.meeting
                while len(places):
                    for columns, more, less in (
                        (move.shape.gaining, up, down),
                        (move.shape.losing, down, up),
                    ):
                        for column in columns:
                            np.maximum.at(rise[:, column], places, more)
                            np.maximum.at(fall[:, column], places, less)
                    parents = self.tree.parents[places]
                    above = parents != meeting
                    places, meeting = parents[above], meeting[above]
                    up, down = up[above], down[above]
        return rise, fall

    def pair_moves(
        self,
        hidden: Mask,
        people: Integers,
        most: Integers,
        items: Sequence[Integers],
    ) -> list[PairMoves]:
        """Return moves of people between two leaves that all items permit.

        A person who moves takes along an answer to every item, and in each of them
        the person who moves in return has the same answer.
        """
        fewest = fewest_people(hidden, people)
        bases, spare = People(people, fewest, most), people - fewest
        moves = []
        for shape in self.shapes(hidden, people[:, :, None]):
            leaves, meeting = self.meeting_places(shape, hidden)
            if not len(leaves):
                continue
            alone = leaves[meeting == ROOT]
            if len(alone):
                forward = bases.forward(shape, alone)[:, 0, 0]
                backward = bases.backward(shape, alone)[:, 0, 0]
                move = PairMoves(
                    *(shape, np.full(len(alone), ROOT), alone, None, forward, backward)
                )
                moves.append(self._within_spare(move, spare).limited_by(items))
            ones, others = pairs(leaves, meeting, people[leaves, EVERYONE])
            if not len(ones):
                continue
            ones, others = leaves[ones], leaves[others]
            forward = np.minimum(
                bases.forward(shape, ones), bases.backward(shape, others)
            )
            backward = np.minimum(
                bases.backward(shape, ones), bases.forward(shape, others)
            )
            move = PairMoves(
                shape,
                self.tree.lowest_common(ones, others),
                *(ones, others, forward[:, 0, 0], backward[:, 0, 0]),
            )
            moves.append(self._within_spare(move, spare).limited_by(items))
        return moves

    def _within_spare(self, move: PairMoves, spare: Integers) -> PairMoves:
        """Limit moves by the people that places above the leaves can lose."""
        forward = np.minimum(move.forward, ENOUGH)
        backward = np.minimum(move.backward, ENOUGH)
        for leaves, losing, gaining in (
            (move.leaves, move.shape.losing, move.shape.gaining),
            (move.partners, move.shape.gaining, move.shape.losing),
        ):
            if leaves is None:
                continue
            places = leaves
            while (below := places != move.meeting).any():
                for column in losing:
                    limit = np.where(below, spare[places, column], ENOUGH)
                    forward = np.minimum(forward, limit)
                for column in gaining:
                    limit = np.where(below, spare[places, column], ENOUGH)
                    backward = np.minimum(backward, limit)
                places = np.where(below, self.tree.parents[places], places)
        return replace(move, forward=forward, backward=backward)

    def shapes(self, hidden: Mask, counts: Integers) -> list[Shape]:
        shapes = [
            Shape((one,), (other,))
            for attribute in self.attributes
            for one, other in combinations(attribute, 2)
        ]
        leaves = self.tree.leaves
        hidden_leaves = leaves[hidden[leaves, EVERYONE]]
        if len(hidden_leaves) or hidden[0, EVERYONE]:
            people = counts[hidden_leaves].sum(axis=(0, 2))
            values = [
                sorted(attribute, key=lambda column: -people[column])
                for attribute in self.attributes
            ]
            shapes += [
                Shape((EVERYONE, *columns))
                for columns in islice(product(*values), MOST_SHAPES_OF_EVERYONE)
            ]
        return shapes

    def meeting_places(self, shape: Shape, hidden: Mask) -> tuple[Integers, Integers]:
        """Return the leaves that can make a move, and how far up it shows.

        That is the first place above a leaf where not all columns are hidden; other
        leaves that meet there can make up for the move. ROOT needs no other.
        """
        covered = np.asarray(hidden[:, shape.columns].all(axis=1))
        leaves = self.tree.leaves[covered[self.tree.leaves]]
        meeting = self.tree.parents[leaves]
        for _ in self.tree.by_depth:
            onwards = (meeting != ROOT) & covered[meeting]
            meeting = np.where(onwards, self.tree.parents[meeting], meeting)
        return leaves, meeting

    def _add(
        self, kind: Answers, shape: Shape, hidden: Mask, rise: Integers, fall: Integers
    ) -> None:
        leaves, meeting = self.meeting_places(shape, hidden)
        if not len(leaves):
            return
        forward, backward = kind.forward(shape, leaves), kind.backward(shape, leaves)
        pools, pool = np.unique(meeting, return_inverse=True)
        everywhere = sums(forward, pool), sums(backward, pool)
        for total in everywhere:
            total[pools == ROOT] = UNLIMITED
        places = leaves
        while len(places):
            unique, index = np.unique(places, return_inverse=True)
            pool_of_place = np.zeros(len(unique), dtype=np.int64)
            pool_of_place[index] = pool
            here = sums(forward, index), sums(backward, index)
            rest = [
                total[pool_of_place] - own
                for total, own in zip(everywhere, here, strict=True)
            ]
            up = most_times(here[0], rest[1])
            down = most_times(here[1], rest[0])
            if places is leaves:
                sources = kind.sources(shape, leaves)
                up += twice(here[0], rest[1], sources[0])
                down += twice(here[1], rest[0], sources[1])
            for columns, more, less in (
                (shape.gaining, up, down),
                (shape.losing, down, up),
            ):
                for column in columns:
                    rise[unique, column] = np.maximum(rise[unique, column], more)
                    fall[unique, column] = np.maximum(fall[unique, column], less)
            above = self.tree.parents[places] != meeting
            forward, backward = forward[above], backward[above]
            pool, meeting = pool[above], meeting[above]
            places = self.tree.parents[places][above]


def most_times(here: Integers, rest: Integers) -> Integers:
    """Return how often an answer can be gained for another one, [place, category]."""
    most: Integers = np.minimum(here, rest).max(axis=2)
    return most


def twice(here: Integers, rest: Integers, sources: Integers) -> Mask:
    """Return where an answer can be gained twice, once each for two other ones.

    Both need one of `sources` in the leaf, [leaf, category], and one elsewhere.
    """
    times = np.minimum(here, rest)
    return np.asarray(
        (times.max(axis=2) == 1)
        & ((times > 0).sum(axis=2) > 1)
        & (np.where(times > 0, rest, 0).max(axis=2) > 1)
        & (sources > 1)
    )


def fewest_people(hidden: Mask, people: Integers) -> Integers:
    """Return what everybody knows of hidden numbers of people.

    A group without people is shown as such, but not in a place that is hidden.
    """
    fewest = np.where(hidden[:, [EVERYONE]], 0, 1)
    return np.where(hidden, fewest, people)


def sums(values: Integers, index: Integers) -> Integers:
    """Add up the rows of the same index."""
    total = np.zeros((int(index.max()) + 1, *values.shape[1:]), dtype=np.int64)
    np.add.at(total, index, values)
    return total
