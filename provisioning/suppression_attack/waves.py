"""Bound hidden numbers from two waves, for somebody who knows that nobody changed.

The attacker knows how many people came to each group of each school and left it since
the first wave, and that all others gave the same answers again. Nobody knows that of
real people; whatever protects against this attacker protects against all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array

from provisioning.suppression_attack.attacker import CANDIDATES, IntegerSystem, Outcome
from provisioning.suppression_attack.database import Stored
from provisioning.suppression_attack.views import Figure
from reports.results.visible import Place
from reports.suppression.tables import EVERYONE, Integers, Mask

# Tables of the unknown numbers, [school, column, category].
FIRST, SECOND, STAYED, CAME, WENT = range(5)
Group = tuple[str, str]


@dataclass
class WavesAttack:
    """An attack on an item by somebody who sees these figures of two waves."""

    waves: tuple[Stored, Stored]
    figures: tuple[Collection[Figure], Collection[Figure]]
    item: str
    # Without it, each wave is attacked by itself.
    knows_that_nobody_changed: bool = True
    generator: np.random.Generator = field(
        default_factory=lambda: np.random.default_rng(1)
    )

    def attack(self) -> Outcome:
        """Count hidden numbers that have few candidates, because of the second wave.

        Implied is what groups that both waves show, and totals, say by themselves: when
        the second wave is decided, the first is known already.
        """
        outcome = Outcome()
        width = np.zeros(self.truth.shape, dtype=np.int64)
        for wave, stored in enumerate(self.waves):
            hidden = stored.decision.items[self.item]
            for school, column in np.argwhere(hidden).tolist():
                cell = self.cell(stored, school, column)
                if cell and not (wave == SECOND and self.was_shown[cell]):
                    most = self.most[wave][cell]
                    width[wave][cell] = np.minimum(most, CANDIDATES - 1)
        wanted = width.ravel()
        outcome.cells = int((wanted > 0).sum())
        if len(self.known_again) == len(self.figures[SECOND]):
            return outcome
        still_open = self.system.search(wanted, self.generator)
        for number in np.flatnonzero(still_open).tolist():
            least, most = self.system.exact_bounds(number)
            if most - least >= wanted[number]:
                continue
            bounds = [one.system.exact_bounds(number) for one in self.inevitable]
            if most - least >= min(high - low for low, high in bounds):
                outcome.implied += 1
                continue
            outcome.narrowed += 1
            outcome.recovered += int(most == least)
        return outcome

    @cached_property
    def was_shown(self) -> Mask:
        """Return the cells [school, column] that the first wave shows."""
        found = np.zeros(self.truth.shape[1:3], dtype=bool)
        for figure in self.figures[FIRST]:
            if figure.table == self.item and len(figure.schools) == 1:
                [school] = figure.schools
                if cell := self.cell(self.waves[FIRST], school, figure.column):
                    found[cell] = True
        return found

    @cached_property
    def known_again(self) -> list[Figure]:
        """Return what the second wave shows as the first did, and its totals."""
        first, second = self.figures
        known = {(self._cells(self.waves[FIRST], one), one.table) for one in first}
        return [
            one
            for one in second
            if one.column == EVERYONE
            or (self._cells(self.waves[SECOND], one), one.table) in known
        ]

    @cached_property
    def inevitable(self) -> list[WavesAttack]:
        """Return attacks without the second wave's new groups, or without the link.

        The latter finds what the second wave tells by itself.
        """
        return [
            WavesAttack(self.waves, (self.figures[FIRST], self.known_again), self.item),
            WavesAttack(
                *(self.waves, self.figures, self.item), knows_that_nobody_changed=False
            ),
        ]

    @cached_property
    def schools(self) -> list[Place]:
        first, second = (
            {one.places[leaf] for leaf in one.hierarchy.tree.leaves.tolist()}
            for one in self.waves
        )
        return sorted(first & second)

    @cached_property
    def attributes(self) -> list[list[Group]]:
        """Return the groups of each attribute by which both waves have results."""
        first, second = (
            [
                [stored.groups[column] for column in columns]
                for columns in stored.hierarchy.groups.attributes
            ]
            for stored in self.waves
        )
        return [groups for groups in first if groups in second]

    @cached_property
    def groups(self) -> list[Group]:
        return [("", ""), *(group for groups in self.attributes for group in groups)]

    def cell(self, stored: Stored, school: int, column: int) -> tuple[int, int] | None:
        """Return a cell's school and column among those of both waves."""
        place, group = stored.places[school], stored.groups[column]
        if place not in self.schools or group not in self.groups:
            return None
        return self.schools.index(place), self.groups.index(group)

    @cached_property
    def truth(self) -> Integers:
        """Return the true numbers, [table, school, column, category]."""
        first, second = (
            stored.hierarchy.items[self.item][self._positions(stored)]
            for stored in self.waves
        )
        later = self.waves[1]
        came = later.hierarchy.came[self.item][self._positions(later)]
        return np.array([first, second, second - came, came, first + came - second])

    def _positions(self, stored: Stored) -> tuple[Integers, ...]:
        places = [stored.places.index(school) for school in self.schools]
        columns = [stored.groups.index(group) for group in self.groups]
        return np.ix_(places, columns)

    @cached_property
    def most(self) -> Integers:
        """Return what each number is at most: the people of the group."""
        people = self.truth.sum(axis=3, keepdims=True)
        return np.broadcast_to(people, self.truth.shape)

    @cached_property
    def system(self) -> IntegerSystem:
        terms = [
            (row, cell, sign)
            for row, equation in enumerate(self._equations())
            for cell, sign in equation
        ]
        rows, cells, signs = map(np.array, zip(*terms, strict=True))
        values = self.truth.ravel().astype(float)
        shape = (int(rows.max()) + 1, len(values))
        matrix = coo_array((signs.astype(float), (rows, cells)), shape=shape)
        least = np.zeros(len(values), dtype=np.int64)
        return IntegerSystem(matrix.tocsr(), values, least, self.most.ravel())

    def _equations(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the cells of each equation with their factors."""
        numbers = np.arange(self.truth.size).reshape(self.truth.shape)
        tables, schools, columns, categories = self.truth.shape
        ends = np.cumsum([1, *map(len, self.attributes)]).tolist()
        for school in range(schools):
            for table in range(tables):
                for column in range(columns):
                    yield [(int(one), 1) for one in numbers[table, school, column]]
                for start, end in zip(ends, ends[1:], strict=False):
                    for category in range(categories):
                        parts = numbers[table, school, start:end, category]
                        whole = numbers[table, school, EVERYONE, category]
                        yield [*((int(one), 1) for one in parts), (int(whole), -1)]
            if self.knows_that_nobody_changed:
                for wave, others in ((FIRST, WENT), (SECOND, CAME)):
                    for whole, stayed, other in zip(
                        *(
                            numbers[one, school].ravel()
                            for one in (wave, STAYED, others)
                        ),
                        strict=True,
                    ):
                        yield [(int(whole), -1), (int(stayed), 1), (int(other), 1)]
        for wave, figures in enumerate(self.figures):
            for figure in figures:
                cells = self._cells(self.waves[wave], figure)
                if cells is None or figure.table != self.item:
                    continue
                for category in range(categories):
                    yield [(int(numbers[wave, *cell, category]), 1) for cell in cells]

    def _cells(
        self, stored: Stored, figure: Figure
    ) -> frozenset[tuple[int, int]] | None:
        """Return the cells that a figure adds up; None if not all are in both waves."""
        cells = [self.cell(stored, school, figure.column) for school in figure.schools]
        known = frozenset(cell for cell in cells if cell)
        return known if len(known) == len(cells) else None
