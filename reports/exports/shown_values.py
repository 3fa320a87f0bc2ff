"""Choose which values of grade, language and subgroups the rows of a place show.

A value is shown for everyone at the place who has it, or for nobody: they have "*"
instead. So no row tells more about one person than the rows of all others alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.answers.people import Ints
from reports.suppression.lattice import isolates

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the people at a place who are counted by their patterns."""

    # In the order of `codes`.
    values: Sequence[str]
    # The value of each pattern.
    codes: Ints
    # Values that the results pages hide.
    hidden: Flags
    # Whether the results pages show figures by this column.
    is_on_pages: bool


def shown_values(columns: Sequence[Column], people: Ints, minimum: int) -> list[Flags]:
    """Return for each column which of its values are shown.

    Every combination of shown cells is shared by at least `minimum` of these people,
    and so is each "*", which stands for two values or more. The first columns show as
    much as they can, and the last ones give up values for them, the smallest first.
    """
    shown: list[Flags] = []
    # The combination of cells, so far, of each pattern.
    cells = np.zeros(len(people), dtype=np.int64)
    for column in columns:
        shown.append(_shown_with(column, cells, people, minimum))
        cells = _combined(cells, column, shown[-1])
    while any(mask.any() for mask in shown) and isolates(
        _known_groups(columns, shown), people, minimum
    ):
        last = max(number for number, mask in enumerate(shown) if mask.any())
        shown[last] = np.zeros_like(shown[last])
    return shown


def _shown_with(column: Column, cells: Ints, people: Ints, minimum: int) -> Flags:
    """Return which values are shown beside the cells of the columns before."""
    width = len(column.values)
    if width == 1:
        # It tells nothing, and pages that hide it show the same people as everyone.
        return np.ones(1, dtype=np.bool_)
    sizes = np.bincount(column.codes, weights=people, minlength=width)
    smallest_first = np.argsort(sizes, kind="stable")
    shown = ~column.hidden
    while shown.any():
        codes = np.where(shown[column.codes], column.codes, width)
        table = np.bincount(
            cells * (width + 1) + codes,
            weights=people,
            minlength=(cells.max() + 1) * (width + 1),
        ).reshape(-1, width + 1)
        few = (table > 0) & (table < minimum)
        given_up: Flags = np.any(few[:, :width], axis=0)
        if not given_up.any():
            # A "*" of too few people is joined by others with the same cells.
            given_up = np.any(table[few[:, width], :width] > 0, axis=0)
        if not given_up.any() and np.count_nonzero(~shown) == 1:
            given_up = shown
        if not given_up.any():
            break
        shown[smallest_first[given_up[smallest_first]][0]] = False
    return shown


def _combined(cells: Ints, column: Column, shown: Flags) -> Ints:
    codes = np.where(shown[column.codes], column.codes, len(column.values))
    numbers = cells * (len(column.values) + 1) + codes
    return np.unique(numbers, return_inverse=True)[1].reshape(-1)


def _known_groups(columns: Sequence[Column], shown: Sequence[Flags]) -> Flags:
    """Return who [pattern] is in each group that the pages or the file show."""
    cells = np.zeros(len(columns[0].codes), dtype=np.int64)
    groups = [np.ones(len(cells), dtype=np.bool_)]
    for column, flags in zip(columns, shown, strict=True):
        cells = _combined(cells, column, flags)
        if column.is_on_pages:
            on_pages = np.flatnonzero(~column.hidden)
            groups += [column.codes == code for code in on_pages.tolist()]
    groups += [cells == number for number in range(cells.max() + 1)]
    return np.stack(groups, axis=1)
