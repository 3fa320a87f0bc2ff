"""Check that the categories of an item work in their order (Linacre 2002)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.rasch.persons import PersonMeasures, category_chances
from reports.rasch.responses import Floats, Integers, ResponseTable

# Fewer answers make a threshold that chance moves.
FEWEST_ANSWERS = 10
# Mean squares beyond are more noise than information.
MOST_OUTFIT = 2.0


@dataclass(frozen=True)
class CategoryDiagnostics:
    """The categories of one item, from low to high.

    `mean_measures` are those of the people who chose each, in logits, and should
    rise; NaN without people. `outfit` is the sum of the squared standardised residuals
    of a category, divided by the one that the model expects of it. `is_reversed` has a
    value for each threshold: it is below the one before, so the category between them
    is never the most likely one.
    """

    counts: Integers
    mean_measures: Floats
    outfit: Floats
    is_reversed: NDArray[np.bool_]

    @property
    def falls(self) -> NDArray[np.bool_]:
        """Whether the people of a category have lower measures than those before."""
        return np.append(False, np.diff(self.mean_measures) < 0)


def category_diagnostics(
    table: ResponseTable, thresholds: Sequence[Floats], measures: PersonMeasures
) -> list[CategoryDiagnostics]:
    """Return the diagnostics of each item, of weighted-likelihood measures.

    The outfit is of people without an extreme score, as that of items.
    """
    return [
        _of_item(table, item, steps, measures) for item, steps in enumerate(thresholds)
    ]


def _of_item(
    table: ResponseTable, item: int, steps: Floats, measures: PersonMeasures
) -> CategoryDiagnostics:
    size = len(steps) + 1
    rows = table.answered[:, item] & np.isfinite(measures.wle)
    chosen = table.categories[rows, item].astype(np.intp)
    people, wle = table.people[rows], measures.wle[rows]
    counts = np.bincount(chosen, people, size)
    sums = np.bincount(chosen, people * wle, size)
    inner = ~measures.is_extreme[rows]
    chances = category_chances(wle[inner], steps)
    distances = np.arange(size) - (chances @ np.arange(size))[:, None]
    squares = distances**2
    squares /= (chances * squares).sum(axis=1, keepdims=True)
    weights, chosen = people[inner], chosen[inner]
    observed = np.bincount(
        chosen, weights * squares[np.arange(len(chosen)), chosen], size
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return CategoryDiagnostics(
            counts.astype(np.int64),
            sums / counts,
            observed / (weights @ (chances * squares)),
            np.append(False, np.diff(steps) < 0),
        )
