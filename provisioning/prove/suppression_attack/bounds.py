"""Solve linear equations over people: by their span, and by integer programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_array, vstack

Floats = NDArray[np.float64]
# Rounding errors of a projection; 0/1 vectors outside a span are farther from it.
TOLERANCE = 1e-6
# A random objective moves many sums at once.
ROUNDS, IDLE_ROUNDS = 12, 3
SECONDS = 5.0


@dataclass(frozen=True, eq=False)
class Constraint:
    """At least and at most so many people of these patterns are in the categories.

    Without categories, in any of them.
    """

    people: Floats
    categories: tuple[str, ...]
    low: float
    high: float
    words: str


def in_span(shown: Sequence[Floats], wanted: Floats) -> NDArray[np.bool_]:
    """Test which vectors are sums and differences of the shown ones."""
    if not shown:
        return np.zeros(len(wanted), dtype=np.bool_)
    rows = np.unique(np.array(shown), axis=0)
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    basis = basis[sizes > TOLERANCE * max(sizes[0], 1)]
    left = wanted - (wanted @ basis.T) @ basis
    is_in_span: NDArray[np.bool_] = np.abs(left).max(axis=1) < TOLERANCE
    return is_in_span


def shortest_combination(shown: Sequence[tuple[str, Floats]], wanted: Floats) -> str:
    """Return in words how few figures add up to the wanted people."""
    matrix = np.array([people for _, people in shown]).T
    result = linprog(
        np.ones(2 * len(shown)),
        A_eq=np.hstack([matrix, -matrix]),
        b_eq=wanted,
        method="highs",
    )
    if result.x is None:
        return "a combination of figures"
    factors = result.x[: len(shown)] - result.x[len(shown) :]
    return " ".join(
        f"{factor:+.3g} [{words}]"
        for factor, (words, _) in zip(factors, shown, strict=True)
        if abs(factor) > TOLERANCE
    )


class IntegerProgram:
    """How many people of each pattern are in each category, [category, pattern]."""

    def __init__(
        self,
        truth: Sequence[Floats],
        categories: Sequence[str],
        constraints: Sequence[Constraint],
        caps: Floats,
    ) -> None:
        self.truth, self.categories = np.array(truth), list(categories)
        self.size = self.truth.shape[1]
        rows: list[Any] = []
        columns: list[Any] = []
        low: list[float] = []
        high: list[float] = []
        self.words: list[str] = []
        seen = set()
        for constraint in constraints:
            chosen = tuple(sorted(constraint.categories or categories))
            key = (constraint.people.tobytes(), chosen, constraint.low, constraint.high)
            if key in seen:
                continue
            seen.add(key)
            patterns = np.flatnonzero(constraint.people)
            for name in chosen:
                columns.append(patterns + categories.index(name) * self.size)
                rows.append(np.full(len(patterns), len(low)))
            low.append(constraint.low)
            high.append(constraint.high)
            self.words.append(constraint.words)
        everybody = np.arange(self.size)
        for number in range(len(categories)):
            columns.append(everybody + number * self.size)
            rows.append(everybody + len(low))
        low += [0.0] * self.size
        high += caps.tolist()
        self.words += ["people on the roster"] * self.size
        row, column = np.concatenate(rows), np.concatenate(columns)
        shape = (len(low), self.truth.size)
        self.matrix = coo_array((np.ones(len(row)), (row, column)), shape=shape).tocsr()
        self.low, self.high = np.array(low), np.array(high)
        sums = self.matrix @ self.truth.ravel()
        if (sums < self.low - TOLERANCE).any() or (sums > self.high + TOLERANCE).any():
            raise RuntimeError("A figure is not what the attacker takes it for")
        self.solutions: list[Floats] = [self.truth]

    def bounds(
        self,
        category: str,
        indicators: Floats,
        candidates: Floats,
        generator: np.random.Generator,
    ) -> tuple[Floats, Floats]:
        """Return the least and the largest number of people of each set.

        Sets with as many candidates as needed are not looked at any further.
        """
        position = self.categories.index(category)
        low: Floats = indicators @ self.truth[position]
        high = low.copy()

        def widen(solution: Floats) -> None:
            numbers = indicators @ solution[position]
            np.minimum(low, numbers, out=low)
            np.maximum(high, numbers, out=high)

        for solution in self.solutions:
            widen(solution)
        idle = 0
        for _ in range(ROUNDS):
            is_open = high - low + 1 < candidates
            if not is_open.any() or idle == IDLE_ROUNDS:
                break
            signs = generator.choice((-1.0, 1.0), len(indicators))
            factors = is_open * signs * generator.uniform(0.5, 1.5, len(indicators))
            extreme = self._solve(position, factors @ indicators)
            if extreme is not None:
                self.solutions.append(extreme)
                widen(extreme)
            is_same = (high - low + 1 < candidates).sum() == is_open.sum()
            idle = idle + 1 if is_same else 0
        for number in np.flatnonzero(high - low + 1 < candidates).tolist():
            for sign, ends in ((1, low), (-1, high)):
                result = self._optimum(position, sign * indicators[number], True)
                bound = (
                    -np.inf if result.mip_dual_bound is None else result.mip_dual_bound
                )
                # If the time was too short, a reader knows the proven bound alone.
                ends[number] = sign * np.ceil(bound - TOLERANCE) + 0.0
        return low, high

    def reasons(self, category: str, indicator: Floats) -> str:
        """Return in words which figures bound a set, from above and from below."""
        position, reasons = self.categories.index(category), []
        for sign, words in ((-1, "at most"), (1, "at least")):
            costs = np.zeros_like(self.truth)
            costs[position] = sign * indicator
            ends = np.concatenate([self.high, -self.low])
            matrix = vstack([self.matrix, -self.matrix]).tocsr()
            known = np.isfinite(ends)
            result = linprog(
                costs.ravel(), A_ub=matrix[known], b_ub=ends[known], method="highs"
            )
            if result.x is None:
                continue
            used = np.flatnonzero(known)[np.abs(result.ineqlin.marginals) > TOLERANCE]
            names = {self.words[number % len(self.words)] for number in used.tolist()}
            reasons.append(f"{words} by {sorted(names)}")
        return "; ".join(reasons)

    def _solve(self, position: int, objective: Floats) -> Floats | None:
        """Return an extreme solution of integers; None if none was found in time."""
        for integral in (False, True):
            result = self._optimum(position, objective, integral)
            if result.x is not None:
                rounded = np.round(result.x)
                if (np.abs(rounded - result.x) < TOLERANCE).all():
                    return np.asarray(rounded.reshape(self.truth.shape))
        return None

    def _optimum(self, position: int, objective: Floats, integral: bool) -> Any:
        costs = np.zeros_like(self.truth)
        costs[position] = objective
        return milp(
            costs.ravel(),
            constraints=LinearConstraint(self.matrix, self.low, self.high),
            bounds=Bounds(0, np.inf),
            integrality=np.full(self.truth.size, int(integral)),
            options={"time_limit": SECONDS},
        )
