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
from scipy.sparse import coo_array, csr_array

from provisioning.suppression_attack.hierarchies import Hierarchy
from reports.suppression.tables import EVERYONE, Integers, Mask

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


class Publication:
    """What is published of a hierarchy, given what is hidden."""

    def __init__(
        self, hierarchy: Hierarchy, groups: Mask, items: dict[str, Mask]
    ) -> None:
        self.hierarchy = hierarchy
        self.groups = groups
        self.items = items
        self.people = hierarchy.groups.people
        self.equations = equations_of(hierarchy)

    def attack_groups(self, generator: np.random.Generator) -> Outcome:
        """Bound the hidden numbers of people, by all tables together.

        A group of a shown place has people if it is hidden, because 0 is shown.
        """
        hidden = self.groups
        fewest = np.where(hidden[:, [EVERYONE]], 0, 1) * np.ones_like(self.people)
        invited = self.hierarchy.groups.invited
        largest = int(self.people[0, EVERYONE])
        most = np.where(invited < 0, invited[:, [EVERYONE]], invited)
        tables = [self.people, *self._counts()]
        masks = [hidden, *self._masks()]
        sizes = [counts.shape[2] for counts in self._shown_items()]
        system = System(self.equations, tables, masks, sizes)
        least = [fewest] + [np.zeros_like(table) for table in tables[1:]]
        limit = [most] + [np.full_like(table, largest) for table in tables[1:]]
        system.bound(least, limit)
        prior_most = np.minimum(smallest_total(self, self.people, hidden), most)
        prior_fewest = np.maximum(fewest, fewest_by_absence(self, hidden))
        width = np.minimum(prior_most - prior_fewest, CANDIDATES - 1)
        wanted = [width] + [np.full_like(table, NOT_WANTED) for table in tables[1:]]
        return system.attack(wanted, generator)

    def attack_item(self, name: str, generator: np.random.Generator) -> Outcome:
        """Bound the counts of an item, as if even hidden numbers of people were known.

        A coordinator knows some of them from the page of response rates.
        """
        counts, hidden = self.hierarchy.items[name], self.items[name]
        tables = [counts[:, :, category] for category in range(counts.shape[2])]
        known = np.zeros_like(hidden)
        system = System(
            self.equations,
            [self.people, *tables],
            [known, *([hidden] * len(tables))],
            [len(tables)],
        )
        system.bound(
            [np.zeros_like(table) for table in (self.people, *tables)],
            [self.people] * (len(tables) + 1),
        )
        wanted = [np.full_like(self.people, NOT_WANTED)]
        for table in tables:
            most = np.minimum(smallest_total(self, table, hidden), self.people)
            others = smallest_total(self, self.people - table, hidden)
            width = most - np.maximum(self.people - others, 0)
            wanted.append(np.minimum(width, CANDIDATES - 1))
        return system.attack(wanted, generator)

    def _counts(self) -> list[Integers]:
        return [
            counts[:, :, category]
            for counts in self._shown_items()
            for category in range(counts.shape[2])
        ]

    def _masks(self) -> list[Mask]:
        return [
            mask
            for mask, counts in zip(
                self.items.values(), self._shown_items(), strict=True
            )
            for _ in range(counts.shape[2])
        ]

    def _shown_items(self) -> list[Integers]:
        return [self.hierarchy.items[name] for name in self.items]


def equations_of(hierarchy: Hierarchy) -> csr_array:
    """Return the sums of one table: a column per cell, with -1 for the total."""
    parents = hierarchy.tree.parents
    places, columns = hierarchy.groups.people.shape
    rows: list[list[tuple[int, int]]] = []
    for place in range(places):
        for attribute in hierarchy.groups.attributes:
            rows.append([(place * columns + column, 1) for column in attribute])
            rows[-1].append((place * columns, -1))
    for parent in sorted(set(parents.tolist()) - {-1}):
        children = np.flatnonzero(parents == parent)
        for column in range(columns):
            rows.append([(int(child) * columns + column, 1) for child in children])
            rows[-1].append((parent * columns + column, -1))
    entries = [
        (row, cell, sign) for row, cells in enumerate(rows) for cell, sign in cells
    ]
    row, cell, sign = map(np.array, zip(*entries, strict=True))
    return coo_array((sign, (row, cell)), shape=(len(rows), places * columns)).tocsr()


def smallest_total(
    publication: Publication, numbers: Integers, hidden: Mask
) -> Integers:
    """Return for each cell the smallest shown total that contains it."""
    parents = publication.hierarchy.tree.parents
    smallest = np.full(numbers.shape, int(publication.people[0, EVERYONE]) + 1000)
    for place, column in np.argwhere(hidden).tolist():
        above = place
        while above >= 0:
            for total in {column, EVERYONE}:
                if not hidden[above, total]:
                    smallest[place, column] = min(
                        smallest[place, column], int(numbers[above, total])
                    )
            above = int(parents[above])
    return smallest


def fewest_by_absence(publication: Publication, hidden: Mask) -> Integers:
    """Return how many answered at least, as so few of a shown total did not."""
    invited, people = publication.hierarchy.groups.invited, publication.people
    known = invited >= 0
    absent = np.where(known, invited - people, int(people[0, EVERYONE]))
    return np.where(known, invited - smallest_total(publication, absent, hidden), 0)


class System:
    """Tables with the same sums; the first one is the sum of each item's tables.

    `categories` are the numbers of tables of the items.
    """

    def __init__(
        self,
        equations: csr_array,
        tables: Sequence[Integers],
        masks: Sequence[Mask],
        categories: Sequence[int],
    ) -> None:
        self.truth = np.concatenate([table.ravel() for table in tables]).astype(float)
        self.unknown = np.concatenate([mask.ravel() for mask in masks])
        cells = tables[0].size
        blocks = []
        for number in range(len(tables)):
            block = equations.tocoo()
            blocks.append((block.row, block.col + number * cells, block.data))
        ends = np.cumsum([1, *categories]).tolist()
        parts = list(zip(ends, ends[1:], strict=False))
        rows, columns, signs, height = [], [], [], 0
        for row, column, sign in blocks:
            rows.append(row + height)
            columns.append(column)
            signs.append(sign)
            height += equations.shape[0]
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
        self, wanted: Sequence[Integers], generator: np.random.Generator
    ) -> Outcome:
        width = np.concatenate([one.ravel() for one in wanted])[self.unknown]
        wanted_cells = width != NOT_WANTED
        outcome = Outcome(cells=int(wanted_cells.sum()))
        outcome.implied = int((width[wanted_cells] < CANDIDATES - 1).sum())
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
        for cell in np.flatnonzero(open_cells):
            smallest, largest = self.exact_bounds(int(cell))
            if largest - smallest >= width[cell]:
                continue
            outcome.narrowed += 1
            outcome.recovered += largest == smallest
        return outcome

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
