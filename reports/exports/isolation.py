"""Test whether two groups that are both known tell about the few who differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Members = NDArray[np.bool_]


def isolates(members: Members, people: NDArray[np.int64], minimum: int) -> bool:
    """Test if two groups differ by fewer than `minimum` people on both sides.

    `members` says which groups [pattern, group] people of a pattern are in, and
    `people` how many have the pattern.
    """
    # Floats, because the product of whole numbers is not made by BLAS.
    inside = members.astype(np.float64)
    both = inside.T @ (inside * people[:, None])
    without = np.diag(both)[:, None] - both
    are_few = without < minimum
    return bool((are_few & are_few.T & (without + without.T > 0)).any())
