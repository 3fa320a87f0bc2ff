"""Bound the numbers that a coordinator or the public may not see from what they see.

These are the hidden groups and items of all schools, and everything about schools
without a report. A hidden number of people that response rates tell is none: rates
show how many have started, in all but small grades.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array

from accounts.models import Membership, User
from provisioning.suppression_attack.attacker import CANDIDATES, IntegerSystem, Outcome
from provisioning.suppression_attack.database import Stored
from provisioning.suppression_attack.views import (
    PEOPLE,
    Figure,
    View,
    coordinator_view,
    public_view,
    schools_without_report,
)
from reports.suppression.tables import EVERYONE, Integers

# A school, a column and a category.
Cell = tuple[int, int, int]


def attack_readers(
    stored: Stored, generator: np.random.Generator, *, unprotected: bool
) -> Counter[str]:
    """Attack with what the public sees, and with what a coordinator sees in addition.

    The coordinator has one school or two, with reports if there are such. Without
    protection, everyone's answers to one item are attacked.
    """
    without_report = schools_without_report(stored)
    schools = stored.hierarchy.tree.leaves.tolist()
    reports = [school for school in schools if school not in without_report]
    number = min(int(generator.integers(1, 3)), len(reports) or 1)
    own = generator.choice(reports or schools, size=number, replace=False).tolist()
    user = User.objects.create(email="coordinator@example.org")
    for school in own:
        Membership.objects.create(
            user=user,
            role=Membership.Role.COORDINATOR,
            school_id=stored.places[school][1],
        )
    figures: Counter[str] = Counter(
        schools=len(schools), schools_without_report=len(without_report)
    )
    for protected in (True, False)[: 1 + unprotected]:
        public = public_view(stored, protected=protected)
        own_view = coordinator_view(stored, own, user, protected=protected)
        for reader, view in (("public", public), ("coordinator", own_view)):
            if reader == "coordinator" and protected:
                view = View([*view.figures, *public.figures], view.own)
            if not protected:
                found = ReaderAttack(stored, view, without_report, "item_1")
                outcome = found.attack(columns=[EVERYONE])
                figures[f"{reader}_recovered_unprotected"] += outcome.recovered
                continue
            outcome = Outcome()
            for table in (PEOPLE, *stored.hierarchy.items):
                found = ReaderAttack(stored, view, without_report, table)
                outcome.add(found.attack())
            figures.update(
                {
                    f"{reader}_attacked": outcome.cells,
                    "recovered": outcome.recovered,
                    "narrowed_below_3": outcome.narrowed,
                    f"{reader}_implied": outcome.implied,
                }
            )
    return figures


@dataclass
class ReaderAttack:
    """An attack on one table, with the knowledge of one reader."""

    stored: Stored
    view: View
    without_report: set[int]
    table: str
    # Leaves out figures of results, and keeps those of response rates.
    rates_only: bool = False
    generator: np.random.Generator = field(
        default_factory=lambda: np.random.default_rng(1)
    )

    @cached_property
    def truth(self) -> Integers:
        if self.table == PEOPLE:
            return self.stored.hierarchy.groups.people[:, :, None]
        return self.stored.hierarchy.items[self.table]

    @cached_property
    def figures(self) -> list[Figure]:
        return [
            figure
            for figure in self.view.figures
            if figure.table == self.table and (figure.is_rate or not self.rates_only)
        ]

    @cached_property
    def shown(self) -> set[tuple[int, int]]:
        """Schools and columns that have a figure of their own."""
        return {
            (school, figure.column)
            for figure in self.figures
            for school in figure.schools
            if len(figure.schools) == 1
        }

    def is_protected(self, school: int, column: int) -> bool:
        people = self.stored.hierarchy.groups.people
        if (school, column) in self.shown or not people[school, column]:
            return False
        decision = self.stored.decision
        hidden = decision.items[self.table] if self.table else decision.groups
        if school in self.view.own:
            return bool(hidden[school, column])
        return school in self.without_report or bool(hidden[school, column])

    def attack(self, *, columns: Iterable[int] | None = None) -> Outcome:
        """Count protected numbers with fewer than three candidates."""
        self.check()
        outcome = Outcome()
        categories = range(self.truth.shape[2])
        chosen = set(columns or range(self.truth.shape[1]))
        cells = [
            (school, column, category)
            for school in self.stored.hierarchy.tree.leaves.tolist()
            for column in sorted(chosen)
            if self.is_protected(school, column)
            for category in categories
        ]
        widths = [self.wanted(cell) for cell in cells]
        outcome.cells = len(cells)
        outcome.implied = sum(width < CANDIDATES - 1 for width in widths)
        inside = [
            (cell, width)
            for cell, width in zip(cells, widths, strict=True)
            if cell[0] in self.touched and width
        ]
        if not inside:
            return outcome
        system = self.system
        wanted = np.zeros(len(system.true_values), dtype=np.int64)
        numbers = {cell: self.unknowns.index(cell) for cell, _ in inside}
        for cell, width in inside:
            wanted[numbers[cell]] = width
        still_open = system.search(wanted, self.generator)
        for cell, width in inside:
            if not still_open[numbers[cell]]:
                continue
            least, most = system.exact_bounds(numbers[cell])
            if most - least >= width:
                continue
            if most - least >= self.width_by_rates(cell):
                outcome.implied += 1
                continue
            outcome.narrowed += 1
            outcome.recovered += int(most == least)
        return outcome

    def check(self) -> None:
        """Raise if a figure is not the sum that the attacker takes it for."""
        for figure in self.figures:
            total = self.truth[sorted(figure.schools), figure.column].sum(axis=0)
            if total.tolist() != list(figure.numbers):
                raise RuntimeError(f"{figure} is not the sum of its schools: {total}")

    def most(self, cell: Cell) -> int:
        """Return what a number is at most, without any figure."""
        school, column, _ = cell
        groups = self.stored.hierarchy.groups
        if self.table:
            return int(groups.people[school, column])
        # Rosters tell how many are invited.
        return int(groups.most_people[school, column])

    def wanted(self, cell: Cell) -> int:
        """Return how much a number should vary: less if a single total says so."""
        school, column, category = cell
        most, least = self.most(cell), 0
        for figure in self.figures:
            if school in figure.schools and figure.column in (column, EVERYONE):
                most = min(most, figure.numbers[category])
                if self.table:
                    others = sum(figure.numbers) - figure.numbers[category]
                    least = max(least, self.most(cell) - others)
        return int(min(CANDIDATES - 1, most - least))

    def width_by_rates(self, cell: Cell) -> int:
        """Return by how much a number of people varies for readers of rates alone."""
        if self.table or self.rates_only:
            return CANDIDATES
        rates = ReaderAttack(
            self.stored, self.view, self.without_report, PEOPLE, rates_only=True
        )
        if cell[0] not in rates.touched:
            return CANDIDATES
        system = rates.system
        least, most = system.exact_bounds(rates.unknowns.index(cell))
        return most - least

    @cached_property
    def touched(self) -> list[int]:
        """Schools that a figure of several schools may tell more about, and own ones.

        Of the others, either all people are shown or nobody.
        """
        found = set(self.view.own)
        for figure in self.figures:
            columns = {(school, figure.column) for school in figure.schools}
            if not columns <= self.shown:
                found |= figure.schools
        return sorted(found)

    @cached_property
    def unknowns(self) -> list[Cell]:
        columns, categories = self.truth.shape[1:]
        return [
            (school, column, category)
            for school in self.touched
            for column in range(columns)
            for category in range(categories)
        ]

    @cached_property
    def system(self) -> IntegerSystem:
        """All equations about the schools that are touched."""
        number_of = {cell: number for number, cell in enumerate(self.unknowns)}
        groups = self.stored.hierarchy.groups
        categories = range(self.truth.shape[2])
        # Something that is always true, since HiGHS needs an equation.
        rows: list[list[tuple[int, int]]] = [[(0, 0)]]
        for school in self.touched:
            for attribute in groups.attributes:
                for category in categories:
                    rows.append(
                        [(number_of[school, one, category], 1) for one in attribute]
                    )
                    rows[-1].append((number_of[school, EVERYONE, category], -1))
            if self.table:
                for column in range(self.truth.shape[1]):
                    rows.append(
                        [(number_of[school, column, one], 1) for one in categories]
                    )
        for figure in self.figures:
            if figure.schools <= set(self.touched):
                for category in categories:
                    rows.append(
                        [
                            (number_of[school, figure.column, category], 1)
                            for school in figure.schools
                        ]
                    )
        entries = [(row, *term) for row, terms in enumerate(rows) for term in terms]
        row, cell, sign = map(np.array, zip(*entries, strict=True))
        values = np.array([self.truth[one] for one in self.unknowns], float)
        matrix = coo_array(
            (sign.astype(float), (row, cell)), shape=(len(rows), len(values))
        )
        most = np.array([self.most(one) for one in self.unknowns])
        return IntegerSystem(matrix.tocsr(), values, self.least, most)

    @property
    def least(self) -> Integers:
        """Return the lower bounds: 1 in a hidden group, because 0 would be shown."""
        found = np.zeros(len(self.unknowns), dtype=np.int64)
        if self.table:
            return found
        hidden = self.stored.decision.groups
        people = self.stored.hierarchy.groups.people
        attributes = self.stored.hierarchy.groups.attributes
        whole = {
            (school, column)
            for school in self.touched
            for attribute in attributes
            if hidden[school, list(attribute)].all()
            for column in attribute
        }
        for number, (school, column, _) in enumerate(self.unknowns):
            is_listed = school in self.view.own and people[school, column] > 0
            if is_listed and hidden[school, column] and (school, column) not in whole:
                found[number] = 1
        return found
