"""Find sums of shown groups that isolate a few people.

Groups of different attributes overlap: the people with reduced lunch are those who
are economically disadvantaged, less those with free lunch. Shown groups, added and
subtracted any number of times, are a lattice; each of its vectors gives every person a
weight. If all weights but those of a few people are zero, the figures of the groups,
added and subtracted in the same way, are figures of these few.

People with the same memberships have the same weight, so vectors have an entry for
each *pattern* of memberships. Those of few people are short: their squared length is
the number of people if all weights are 1 or -1. Short vectors of a lattice are
enumerated as by Fincke and Pohst, "Improved methods for calculating vectors of short
length in a lattice", Mathematics of Computation 44 (1985), after a pairwise reduction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reports.suppression.tables import EVERYONE, Integers, Mask

# Weights up to this are looked for exactly.
LARGEST_WEIGHT = 2
# Partial sums that are looked at.
MOST_SUMS = 50_000
# Lengths below are errors of rounding.
NOTHING = 1e-6
# Squared distances from which a sum is not known.
APART = 0.5
RIDGE = 1e-5
Floats = NDArray[np.float64]


class TooManySums(Exception):
    """Many sums are short, so that it would take too long to find all."""


def isolates(members: Mask, people: Integers, minimum: int) -> bool:
    """Return whether sums of these groups isolate fewer people than the minimum.

    `members` are [pattern, group], `people` have each pattern.
    """
    try:
        return len(light_sums(members, people, minimum)) > 0
    except TooManySums:
        return True


def light_sums(
    members: Mask | Floats, people: Integers | Floats, minimum: int
) -> Integers:
    """Return sums of groups that are of 1 to `minimum` - 1 people: [sum, group].

    Each is a row of whole numbers, by which the groups are multiplied. Raises
    TooManySums.
    """
    if not may_isolate(members, people, minimum):
        return np.zeros((0, members.shape[1]), dtype=np.int64)
    sums = short_sums(members, people, LARGEST_WEIGHT**2 * (minimum - 1))
    size = sizes(sums, members, people)
    return sums[(size > 0) & (size < minimum)]


def may_isolate(
    members: Mask | Floats, people: Integers | Floats, minimum: int
) -> bool:
    """Return whether sums of groups, with any factors, can be of few people only.

    Such a sum gives patterns of at least the minimum of people no weight. If groups
    that differ, differ in these patterns already, only the sum of nothing does. That is
    so in most schools, and takes a tenth of the time of `short_sums`.
    """
    columns = members.astype(float)
    large = np.linalg.matrix_rank(columns[people >= minimum])
    return bool(large < np.linalg.matrix_rank(columns[people > 0]))


def sizes(
    sums: Integers, members: Mask | Floats, people: Integers | Floats
) -> Integers:
    """Return how many people have a weight in each sum: [sum], or [sum, item]."""
    weights = sums.astype(float) @ members.T.astype(float)
    # In floating point, for which there is a fast product of matrices.
    return np.rint((weights != 0).astype(float) @ people.astype(float)).astype(np.int64)


def short_sums(
    members: Mask | Floats, people: Integers | Floats, most: float
) -> Integers:
    """Return sums of groups with at most this sum of squared weights: [sum, group].

    Raises TooManySums.
    """
    columns = members.astype(float)
    gram = np.rint((columns * people[:, None]).T @ columns).astype(np.int64)
    basis = reduced_basis(gram)
    if not len(basis):
        return basis
    return short_vectors(basis @ gram @ basis.T, most) @ basis


def scalar_products(members: Floats, people: Integers | Floats) -> Floats:
    """Return how many people are in both of two groups: [group, group]."""
    return (members * people[:, None]).T @ members


def group_to_hide(
    gram: Floats,
    sums: Integers,
    shown: Integers,
    people: Integers | Floats,
    preferred: Mask,
) -> int | None:
    """Return which group has to be hidden next, so that these sums are not known.

    A sum is known if shown groups, with any factors, have it as theirs. Of all groups
    but the first, which is everyone, it is a `preferred` one if it can be, and then the
    one without which the fewest sums are known; of several, the smallest. None if no
    sum is known.

    `gram` are the scalar products of all groups, `sums` are [sum, group].
    """
    if not len(sums) or len(shown) == 1:
        return None
    # With a ridge, because groups depend on each other: grades add up to everyone.
    inverse = np.linalg.inv(gram[np.ix_(shown, shown)] + RIDGE * np.eye(len(shown)))
    products = sums.astype(float) @ gram
    factors = products[:, shown] @ inverse
    distance = (products * sums).sum(axis=1) - (factors * products[:, shown]).sum(
        axis=1
    )
    is_known = distance < APART
    if not is_known.any():
        return None
    # How far the sums are from what is shown without one of the groups.
    without = distance[is_known, None] + factors[is_known] ** 2 / inverse.diagonal()
    known = (without < APART).sum(axis=0)
    order = np.lexsort((people[shown], known, ~preferred[shown]))
    return next(int(group) for group in shown[order] if group != EVERYONE)


def reduced_basis(gram: Integers | Floats) -> Integers:
    """Return a basis of short vectors, as whole multiples of the generators.

    `gram` are the scalar products of the generators. Each vector is reduced by others
    as long as it becomes shorter; what becomes zero depends on the others.
    """
    basis = np.eye(len(gram), dtype=np.int64)
    gram = gram.copy()
    while True:
        size = gram.diagonal()
        used = size > NOTHING
        basis, gram = basis[used], gram[np.ix_(used, used)]
        size = size[used]
        if len(basis) < 2:
            return basis
        times = np.rint(gram / size).astype(np.int64)
        np.fill_diagonal(times, 0)
        # How much shorter each (row) becomes without so many times another (column).
        gain = times * (2 * gram - times * size)
        row, column = divmod(int(gain.argmax()), len(basis))
        if gain[row, column] <= NOTHING:
            return independent(basis, gram)
        basis[row] -= times[row, column] * basis[column]
        change = times[row, column] * gram[column]
        gram[row] -= change
        gram[:, row] -= times[row, column] * gram[:, column]


def independent(basis: Integers, gram: Integers | Floats) -> Integers:
    """Return the vectors that are no combination of those before them."""
    chosen: list[int] = []
    left = gram.astype(float)
    for row in np.argsort(gram.diagonal(), kind="stable").tolist():
        if left[row, row] > NOTHING * gram[row, row]:
            chosen.append(row)
            left = left - np.outer(left[:, row], left[row]) / left[row, row]
    return basis[chosen]


def short_vectors(gram: Integers | Floats, most: float) -> Integers:
    """Return the coefficients of non-zero vectors with at most this squared length.

    `gram` are the scalar products of a basis. Of a vector and its opposite, one. Raises
    TooManySums.
    """
    number = len(gram)
    # gram = upper.T @ diag(pivots) @ upper, with ones on the diagonal of `upper`.
    lower = np.linalg.cholesky(gram.astype(float))
    pivots = lower.diagonal() ** 2
    upper = (lower / lower.diagonal()).T
    sums = np.zeros((1, number), dtype=np.int64)
    length = np.zeros(1)
    for row in range(number - 1, -1, -1):
        center = -(sums[:, row + 1 :] @ upper[row, row + 1 :])
        radius = np.sqrt(np.maximum(most - length, 0) / pivots[row]) + 1e-9
        least = np.ceil(center - radius).astype(np.int64)
        # Of two opposite vectors, the one whose last coefficient is positive.
        least[~sums.any(axis=1)] = 0
        number_of = np.floor(center + radius).astype(np.int64) - least + 1
        np.maximum(number_of, 0, out=number_of)
        if number_of.sum() > MOST_SUMS:
            raise TooManySums
        parent = np.repeat(np.arange(len(sums)), number_of)
        first = np.cumsum(number_of) - number_of
        sums = sums[parent]
        sums[:, row] = least[parent] + np.arange(len(parent)) - first[parent]
        offset = sums[:, row] - center[parent]
        length = length[parent] + pivots[row] * offset**2
    return sums[sums.any(axis=1)]
