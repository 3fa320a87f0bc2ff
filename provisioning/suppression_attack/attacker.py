"""Bound hidden numbers from everything that is published.

An attacker who does not use the code that decides what is hidden: linear equations
over all cells, solved by HiGHS. Any integer solution is a possible truth, so that two
of them which differ in a cell are two candidates for it. Cells that solutions for
random objectives leave with too few candidates are bounded exactly, by the smallest
and the largest integer solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_array, csr_array, vstack

from provisioning.suppression_attack.hierarchies import Hierarchy
from reports.suppression.results import primary_groups
from reports.suppression.tables import EVERYONE, Decision, Integers, Mask

CANDIDATES = 3
NOT_WANTED = -1
# A random objective moves many cells at once.
ROUNDS = 40
IDLE_ROUNDS = 4


@dataclass
class Outcome:
    """Hidden numbers, and those that the attacker found out more about."""

    cells: int = 0
    recovered: int = 0
    narrowed: int = 0
    # With fewer than three candidates, because the totals alone leave no more.
    implied: int = 0

    def add(self, other: Outcome) -> None:
        self.cells += other.cells
        self.recovered += other.recovered
        self.narrowed += other.narrowed
        self.implied += other.implied


def unprotected(hierarchy: Hierarchy) -> Decision:
    """Hide only the small groups themselves; everybody is counted everywhere."""
    primary = primary_groups(hierarchy.groups, hierarchy.minimum)
    counted = np.ones((len(hierarchy.tree), len(hierarchy.groups.attributes)), bool)
    return Decision(
        primary,
        counted,
        ~counted,
        dict.fromkeys(hierarchy.items, primary),
        dict.fromkeys(hierarchy.items, counted),
    )


class Publication:
    """What is published of a hierarchy, given what is hidden."""

    def __init__(self, hierarchy: Hierarchy, decision: Decision) -> None:
        self.hierarchy = hierarchy
        self.decision = decision

    def attack_groups(self, generator: np.random.Generator) -> Outcome:
        """Bound the hidden numbers of people.

        A group of a shown place has people if it is hidden and others are not,
        because 0 is shown then.
        """
        table = Table(self.hierarchy, self.decision, self.decision.groups, None)
        people, hidden = self.hierarchy.groups.people, table.hidden
        numbers = table.published(people)
        fewest = np.where(hidden[:, [EVERYONE]], 0, 1) * np.ones_like(people)
        # Of a district, all people of a group may be left out; and where nothing is
        # shown by an attribute, not even an empty group is.
        above = np.setdiff1d(np.arange(len(people)), self.hierarchy.tree.leaves)
        fewest[above, EVERYONE + 1 :] = 0
        for columns in map(np.array, self.hierarchy.groups.attributes):
            places = np.flatnonzero(hidden[:, columns].all(axis=1))
            fewest[np.ix_(places, columns)] = 0
        fewest[table.wanted(fewest) == NOT_WANTED] = 0
        invited = self.hierarchy.groups.invited
        known = invited >= 0
        most = np.where(known, invited, invited[:, [EVERYONE]])
        systems = []
        everything = vstack([table.equations(), table.sums_of_items()]).tocsr()
        for equations, mask in (
            (everything, hidden),
            (table.equations(), table.hidden_by_attributes()),
        ):
            systems.append(System([equations], [numbers], [mask], []))
            systems[-1].bound([np.where(hidden, fewest, 0)], [most])
        absent = table.published(np.where(known, invited - people, most))
        at_least = np.where(known, invited - table.smallest_total(absent), 0)
        width = np.minimum(table.smallest_total(numbers), most)
        width -= np.maximum(fewest, at_least)
        return systems[0].attack([table.wanted(width)], systems[1], generator)

    def attack_item(self, name: str, generator: np.random.Generator) -> Outcome:
        """Bound the counts of an item, as if even hidden numbers of people were known.

        A coordinator knows some of them from the page of response rates.
        """
        table = Table(self.hierarchy, self.decision, self.decision.items[name], name)
        counts = table.published(self.hierarchy.items[name])
        people, hidden = counts.sum(axis=2), table.hidden
        categories = [counts[:, :, number] for number in range(counts.shape[2])]
        systems = []
        for mask in (hidden, table.hidden_by_attributes()):
            system = System(
                [table.equations()] * (len(categories) + 1),
                [people, *categories],
                [np.zeros_like(hidden), *([mask] * len(categories))],
                [len(categories)],
            )
            system.bound(
                [np.zeros_like(people)] * (len(categories) + 1),
                [people] * (len(categories) + 1),
            )
            systems.append(system)
        wanted = [np.full_like(people, NOT_WANTED)]
        for numbers in categories:
            most = np.minimum(table.smallest_total(numbers), people)
            others = table.smallest_total(people - numbers)
            wanted.append(table.wanted(most - np.maximum(people - others, 0)))
        return systems[0].attack(wanted, systems[1], generator)


@dataclass(frozen=True)
class Table:
    """The sums and hidden cells of the numbers of people, or of an item."""

    hierarchy: Hierarchy
    decision: Decision
    hidden: Mask
    item: str | None

    def published(self, numbers: Integers) -> Integers:
        tree, groups = self.hierarchy.tree, self.hierarchy.groups
        return self.decision.published(tree, groups, numbers, self.item)

    def hidden_by_attributes(self) -> Mask:
        """Return the hidden cells if only totals of places were shown."""
        hidden = self.hidden.copy()
        hidden[:, EVERYONE + 1 :] = True
        return hidden

    def equations(self) -> csr_array:
        """Return the published sums: a column per cell, with -1 for the total."""
        tree, groups = self.hierarchy.tree, self.hierarchy.groups
        places, columns = groups.people.shape
        rows: list[list[tuple[int, int]]] = []
        for leaf in tree.leaves.tolist():
            for attribute in groups.attributes:
                rows.append([(leaf * columns + column, 1) for column in attribute])
                rows[-1].append((leaf * columns + EVERYONE, -1))
        for place in range(places):
            for column in range(columns):
                parts = self.parts(place, column)
                if parts:
                    rows.append([(part * columns + column, 1) for part in parts])
                    rows[-1].append((place * columns + column, -1))
        return self._matrix(rows)

    def sums_of_items(self) -> csr_array:
        """Return sums of people that numbers of an item tell: a column per cell."""
        rows: list[list[tuple[int, int]]] = []
        columns = self.hierarchy.groups.people.shape[1]
        for item, hidden in self.decision.items.items():
            table = Table(self.hierarchy, self.decision, hidden, item)
            for place, column in np.argwhere(~hidden[:, EVERYONE + 1 :]).tolist():
                cell = column + EVERYONE + 1
                schools = table.schools(place, cell)
                rows.append([(school * columns + cell, 1) for school in schools])
        return self._matrix(rows)

    def _matrix(self, rows: list[list[tuple[int, int]]]) -> csr_array:
        places, columns = self.hierarchy.groups.people.shape
        entries = [
            (row, cell, sign) for row, cells in enumerate(rows) for cell, sign in cells
        ]
        row, cell, sign = np.array(entries, dtype=np.int64).reshape(-1, 3).T
        shape = (len(rows), places * columns)
        return coo_array((sign, (row, cell)), shape=shape).tocsr()

    def parts(self, place: int, column: int) -> list[int]:
        """Return the places that the published number of a group is the sum of."""
        children: list[int] = self.hierarchy.tree.children(place).tolist()
        if column == EVERYONE:
            return children
        number = self.attribute_of(column)
        counted = self.decision.counted
        if self.item is not None:
            counted = self.decision.counted_items[self.item]
        return [child for child in children if counted[child, number]]

    def attribute_of(self, column: int) -> int:
        attributes = self.hierarchy.groups.attributes
        return next(n for n, columns in enumerate(attributes) if column in columns)

    def smallest_total(self, numbers: Integers) -> Integers:
        """Return for each hidden cell the smallest shown total that contains it."""
        parents = self.hierarchy.tree.parents
        smallest = np.full(numbers.shape, int(numbers.max()) + 1000)
        for place, column in np.argwhere(self.hidden).tolist():
            above, containing = place, {EVERYONE, column}
            while above >= 0:
                for total in containing:
                    if not self.hidden[above, total]:
                        smallest[place, column] = min(
                            smallest[place, column], int(numbers[above, total])
                        )
                child, above = above, int(parents[above])
                if above >= 0 and child not in self.parts(above, column):
                    containing = {EVERYONE}
        return smallest

    def wanted(self, width: Integers) -> Integers:
        """Return how much each hidden cell should vary.

        Figures of places that leave out all of their schools are no numbers.
        """
        wanted = np.minimum(width, CANDIDATES - 1)
        tree = self.hierarchy.tree
        for place in np.setdiff1d(np.arange(len(tree)), tree.leaves).tolist():
            for columns in self.hierarchy.groups.attributes:
                if not self.schools(place, columns[0]):
                    wanted[place, list(columns)] = NOT_WANTED
        return wanted

    def schools(self, place: int, column: int) -> list[int]:
        """Return the schools that a published number is the sum of."""
        if place in self.hierarchy.tree.leaves:
            return [place]
        parts = self.parts(place, column)
        return [school for part in parts for school in self.schools(part, column)]


class IntegerSystem:
    """Equations of unknown numbers, each with its smallest and largest value."""

    def __init__(
        self,
        matrix: csr_array,
        true_values: NDArray[np.float64],
        least: Integers,
        most: Integers,
    ) -> None:
        self.matrix = matrix
        self.true_values = true_values
        self.sides = matrix @ true_values
        self.least, self.most = least, most

    def search(self, width: Integers, generator: np.random.Generator) -> Mask:
        """Return the unknown numbers that random solutions do not vary enough."""
        low, high = self.true_values.copy(), self.true_values.copy()
        open_cells = high - low < width
        idle = 0
        for _ in range(ROUNDS):
            if not open_cells.any() or idle == IDLE_ROUNDS:
                break
            objective = np.where(
                open_cells, generator.choice((-1.0, 1.0), len(width)), 0
            ) * generator.uniform(0.5, 1.5, len(width))
            solution = self.solve(objective)
            before = int(open_cells.sum())
            if solution is not None:
                low, high = np.minimum(low, solution), np.maximum(high, solution)
                open_cells = high - low < width
            idle = idle + 1 if int(open_cells.sum()) == before else 0
        return open_cells

    def solve(self, objective: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return an extreme solution, None if it is not of integers."""
        result = linprog(
            objective,
            A_eq=self.matrix,
            b_eq=self.sides,
            bounds=np.column_stack([self.least, self.most]),
            method="highs",
        )
        if result.x is None:
            raise RuntimeError(f"The published numbers contradict: {result.message}")
        rounded: NDArray[np.float64] = np.round(result.x)
        # Integers that satisfy every equation exactly are a possible truth.
        if (self.matrix @ rounded != self.sides).any():
            return None
        return rounded

    def exact_bounds(self, cell: int) -> tuple[int, int]:
        objective = np.zeros(len(self.true_values))
        objective[cell] = 1
        bounds = []
        for sign in (1, -1):
            result = milp(
                sign * objective,
                constraints=LinearConstraint(self.matrix, self.sides, self.sides),
                bounds=Bounds(self.least, self.most),
                integrality=np.ones(len(objective)),
                options={"time_limit": 60},
            )
            if result.x is None:
                raise RuntimeError(f"HiGHS found no solution: {result.message}")
            bounds.append(round(result.x[cell]))
        return bounds[0], bounds[1]


class System(IntegerSystem):
    """Tables with sums of their own; the first one is the sum of each item's tables.

    `categories` are the numbers of tables of the items.
    """

    def __init__(
        self,
        equations: Sequence[csr_array],
        tables: Sequence[Integers],
        masks: Sequence[Mask],
        categories: Sequence[int],
    ) -> None:
        self.truth = np.concatenate([table.ravel() for table in tables]).astype(float)
        self.unknown = np.concatenate([mask.ravel() for mask in masks])
        self.positions = np.flatnonzero(self.unknown)
        self.columns = tables[0].shape[1]
        cells = tables[0].size
        blocks = []
        for number, sums in enumerate(equations):
            block = sums.tocoo()
            blocks.append((block.row, block.col + number * cells, block.data))
        ends = np.cumsum([1, *categories]).tolist()
        parts = list(zip(ends, ends[1:], strict=False))
        rows, columns, signs, height = [], [], [], 0
        for row, column, sign in blocks:
            rows.append(row + height)
            columns.append(column)
            signs.append(sign)
            height += equations[0].shape[0]
        each = np.arange(cells)
        for start, end in parts:
            for table in (0, *range(start, end)):
                rows.append(each + height)
                columns.append(each + table * cells)
                signs.append(np.full(cells, 1 if table else -1))
            height += cells
        whole = coo_array(
            (
                np.concatenate(signs).astype(float),
                (np.concatenate(rows), np.concatenate(columns)),
            ),
            shape=(height, len(self.truth)),
        ).tocsr()
        matrix = whole[:, np.flatnonzero(self.unknown)]
        used = np.diff(matrix.indptr) > 0
        self.matrix = matrix[np.flatnonzero(used)]
        self.true_values = self.truth[self.unknown]
        self.sides = self.matrix @ self.true_values

    def bound(self, least: Sequence[Integers], most: Sequence[Integers]) -> None:
        """Set what is known of each unknown number beforehand."""
        self.least = np.concatenate([one.ravel() for one in least])[self.unknown]
        self.most = np.concatenate([one.ravel() for one in most])[self.unknown]

    def attack(
        self,
        wanted: Sequence[Integers],
        totals: System,
        generator: np.random.Generator,
    ) -> Outcome:
        """Count hidden numbers with too few candidates.

        `totals` is what is known if nothing is shown by any attribute.
        """
        width = np.concatenate([one.ravel() for one in wanted])[self.unknown]
        wanted_cells = width != NOT_WANTED
        outcome = Outcome(cells=int(wanted_cells.sum()))
        outcome.implied = int((width[wanted_cells] < CANDIDATES - 1).sum())
        open_cells = self.search(width, generator)
        for cell in np.flatnonzero(open_cells):
            smallest, largest = self.exact_bounds(int(cell))
            if largest - smallest >= width[cell]:
                continue
            position = int(self.positions[cell])
            if position % self.columns != EVERYONE:
                bounds = totals.exact_bounds(
                    int(np.searchsorted(totals.positions, position))
                )
                if largest - smallest >= bounds[1] - bounds[0]:
                    outcome.implied += 1
                    continue
            outcome.narrowed += 1
            outcome.recovered += largest == smallest
        return outcome
