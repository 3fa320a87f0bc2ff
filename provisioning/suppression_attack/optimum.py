"""Find the fewest cells that have to be hidden, by integer programming.

For each small cell there have to be two tables that agree with everything shown and
differ in the cell as much as needed. Other hidden cells need nothing here, and the
tables need not consist of integers; so the real optimum may be larger, and never
smaller.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from provisioning.suppression_attack.attacker import CANDIDATES, Table, unprotected
from provisioning.suppression_attack.hierarchies import Hierarchy
from reports.suppression.tables import Integers, Mask

SECONDS = 8.0


class Program:
    """An integer program that is built up variable by variable."""

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.least: list[float] = []
        self.most: list[float] = []
        self.integral: list[int] = []
        self.rows: list[tuple[Sequence[tuple[int, float]], float, float]] = []

    def add(self, count: int, least: float, most: float, cost: float = 0) -> range:
        first = len(self.costs)
        self.costs += [cost] * count
        self.least += [least] * count
        self.most += [most] * count
        self.integral += [int(cost > 0)] * count
        return range(first, first + count)

    def solve(self) -> float | None:
        """Return a lower bound of the cost, which is the optimum if it was found.

        None if the time was too short for any bound.
        """
        entries = [
            (row, column, factor)
            for row, (terms, _, _) in enumerate(self.rows)
            for column, factor in terms
        ]
        row, column, factor = map(np.array, zip(*entries, strict=True))
        result = milp(
            np.array(self.costs),
            constraints=LinearConstraint(
                coo_array(
                    (factor, (row, column)), shape=(len(self.rows), len(self.costs))
                ).tocsr(),
                [low for _, low, _ in self.rows],
                [high for _, _, high in self.rows],
            ),
            bounds=Bounds(self.least, self.most),
            integrality=np.array(self.integral),
            options={"time_limit": SECONDS, "mip_rel_gap": 0.0},
        )
        if result.mip_dual_bound is None:
            return None
        return float(np.ceil(result.mip_dual_bound - 1e-6))


def fewest_hidden(hierarchy: Hierarchy, primary: Mask) -> float | None:
    """Return how many groups and items have to be hidden at least, together."""
    table = Table(hierarchy, unprotected(hierarchy), primary, None)
    people = hierarchy.groups.people
    program = Program()
    hides = program.add(people.size, 0, 1, cost=1)
    for cell in np.flatnonzero(primary.ravel()):
        program.least[hides[cell]] = 1
    require_large_unions(program, hierarchy, hides, primary)
    most = np.where(
        hierarchy.groups.invited < 0,
        hierarchy.groups.invited[:, [0]],
        hierarchy.groups.invited,
    )
    fewest = np.where(primary[:, [0]], 0, 1) * np.ones_like(people)
    absent = most - people
    fewest = np.maximum(fewest, most - table.smallest_total(absent))
    width = np.minimum(table.smallest_total(people), most) - fewest
    for cell in np.flatnonzero(primary.ravel()):
        require_range(
            *(program, hierarchy, hides, [people], (0, int(cell))),
            min(CANDIDATES - 1, int(width.ravel()[cell])),
        )
    for counts in hierarchy.items.values():
        hides_item = program.add(people.size, 0, 1, cost=1)
        for group, item in zip(hides, hides_item, strict=True):
            program.rows.append((((item, 1.0), (group, -1.0)), 0, 1))
        tables = [counts[:, :, category] for category in range(counts.shape[2])]
        for number, numbers in enumerate(tables):
            highest = np.minimum(table.smallest_total(numbers), people)
            others = table.smallest_total(people - numbers)
            width = highest - np.maximum(people - others, 0)
            for cell in np.flatnonzero(primary.ravel()):
                require_range(
                    *(program, hierarchy, hides_item, tables, (number, int(cell))),
                    min(CANDIDATES - 1, int(width.ravel()[cell])),
                )
    return program.solve()


def require_large_unions(
    program: Program, hierarchy: Hierarchy, hides: range, primary: Mask
) -> None:
    """Require that the hidden parts of a shown total are not few people."""
    equations = Table(hierarchy, unprotected(hierarchy), primary, None).equations()
    people = hierarchy.groups.people.ravel()
    hidden = primary.ravel()
    for row in range(equations.shape[0]):
        _, cells = equations[[row]].nonzero()
        total = next(cell for cell in cells if equations[row, cell] < 0)
        parts = [int(cell) for cell in cells if cell != total]
        if hidden[parts].any() and people[parts][hidden[parts]].sum():
            terms = [(hides[part], float(people[part])) for part in parts]
            terms.append((hides[int(total)], float(hierarchy.minimum)))
            program.rows.append((terms, hierarchy.minimum, np.inf))


def require_range(
    program: Program,
    hierarchy: Hierarchy,
    hides: range,
    tables: Sequence[Integers],
    cell: tuple[int, int],
    width: int,
) -> None:
    """Require two tables whose numbers in a cell of one table differ by the width.

    Their differences from the true numbers add up to 0 in each sum, and where there
    are several categories, over these.
    """
    if width <= 0:
        return
    everything = unprotected(hierarchy)
    equations = (
        Table(hierarchy, everything, everything.groups, None).equations().tocoo()
    )
    changes = []
    for _ in range(2):
        change = []
        for table in tables:
            numbers = table.ravel()
            values = program.add(len(numbers), -np.inf, np.inf)
            # Moving more than the width in one cell is never needed.
            for position, value in enumerate(values):
                down = min(float(numbers[position]), 2.0 * width)
                program.least[value], program.most[value] = -down, 2.0 * width
                hide = hides[position]
                program.rows.append((((value, 1.0), (hide, -2.0 * width)), -np.inf, 0))
                program.rows.append((((value, 1.0), (hide, down)), 0, np.inf))
            for row in range(equations.shape[0]):
                chosen = equations.row == row
                terms = [
                    (values[int(column)], float(sign))
                    for column, sign in zip(
                        equations.col[chosen], equations.data[chosen], strict=True
                    )
                ]
                program.rows.append((terms, 0, 0))
            change.append(values)
        if len(tables) > 1:
            for position in range(len(change[0])):
                program.rows.append(
                    ([(values[position], 1.0) for values in change], 0, 0)
                )
        changes.append(change)
    number, position = cell
    program.rows.append(
        (
            (
                (changes[0][number][position], 1.0),
                (changes[1][number][position], -1.0),
            ),
            width,
            np.inf,
        )
    )
