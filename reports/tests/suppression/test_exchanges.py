"""Counts that are known by their sums have candidates, and never fewer than found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from reports.suppression.exchanges import (
    are_interchangeable,
    width_by_exchanges,
    widths_by_single_exchanges,
    widths_of_sums,
)


def exact_width(counts, chosen):
    """Return by how much the sum of these counts can change, by integer programs."""
    numbers = np.arange(counts.size).reshape(counts.shape)
    rows = []
    for axis in range(3):
        lines = np.moveaxis(numbers, axis, -1).reshape(-1, counts.shape[axis])
        for line in lines:
            row = np.zeros(counts.size)
            row[line] = 1
            rows.append(row)
    matrix = np.array(rows)
    sides = matrix @ counts.ravel()
    objective = chosen.ravel().astype(float)
    bounds = [
        milp(
            sign * objective,
            constraints=LinearConstraint(matrix, sides, sides),
            bounds=Bounds(0, counts.sum()),
            integrality=np.ones(counts.size),
        ).fun
        for sign in (1, -1)
    ]
    return round(-bounds[1] - bounds[0])


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1], [2, 1, 1], [3, 1]])
@pytest.mark.parametrize("seed", range(4))
def test_no_count_has_fewer_candidates_than_were_found(seed, sizes):
    generator = np.random.default_rng([7, seed])
    counts = generator.poisson(1.2, (4, 2, 3))
    single = widths_by_single_exchanges(counts, sizes)
    exact = np.zeros_like(single)
    ends = np.cumsum(sizes)
    for place, group, category in np.ndindex(single.shape):
        start, end = int(ends[place]) - sizes[place], int(ends[place])
        chosen = np.zeros_like(counts)
        chosen[start:end, group, category] = 1
        cell = place, group, category
        exact[cell] = exact_width(counts, chosen)
        assert width_by_exchanges(counts, (start, end), cell[1:]) <= exact[cell]
    assert (single <= exact).all()
    wanted = widths_of_sums(np.add.reduceat(counts, ends - sizes), of_people=False)
    if are_interchangeable(counts, sizes):
        assert (exact >= wanted).all()


def test_schools_that_answered_alike_are_interchangeable():
    counts = np.full((3, 2, 3), 4)
    assert are_interchangeable(counts, [1, 1, 1])
    assert are_interchangeable(counts, [2, 1])


def test_what_totals_tell_together_is_not_interchangeable():
    # Nobody else chose the last two categories, so that the groups' sums are the first
    # school's own numbers. None of these sums tells that alone.
    counts = np.array([[[4, 3, 3], [4, 3, 3]], [[9, 0, 0], [9, 0, 0]]])
    chosen = np.zeros_like(counts)
    chosen[0, 0, 1] = 1
    assert exact_width(counts, chosen) == 0
    assert widths_of_sums(counts, of_people=False)[0, 0, 1] == 2
    assert not are_interchangeable(counts, [1, 1])
