"""Find out whether numbers that are only known by their sums have enough candidates.

Counts [school, group, category] of which all sums over one of the three are known can
change together: two schools, two groups and two categories exchange people, so that
four counts grow by one, the other four shrink by one, and all of these sums stay the
same. What exchanges lead to is another possible truth. There may be others, which
nobody looks for here; then a count seems to have fewer candidates than it has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reports.suppression.tables import CANDIDATES, Integers, Mask

# Schools that exchange people at most; more make hardly a difference.
PARTNERS = 30
# Schools that are looked at together, which bounds the memory.
AT_ONCE = 500


def are_interchangeable(
    counts: Integers, sizes: Sequence[int], *, of_people: bool = False
) -> bool:
    """Return whether all counts can change by two, or by what single sums allow.

    These are the counts of `sizes` schools together, one after another: of districts,
    or of each school. `of_people` have answered or not, instead of categories.
    """
    ends = np.cumsum(sizes, dtype=np.int64)
    starts = ends - np.asarray(sizes, dtype=np.int64)
    wanted = widths_of_sums(np.add.reduceat(counts, starts, axis=0), of_people)
    width = widths_by_single_exchanges(counts, sizes)
    return all(
        width_by_exchanges(counts, (starts[place], ends[place]), (group, category))
        >= wanted[place, group, category]
        for place, group, category in np.argwhere(width < wanted).tolist()
    )


def widths_of_sums(counts: Integers, of_people: bool) -> Integers:
    """Return by how much single sums let each count change, up to two.

    How many of all schools have not answered is no published sum.
    """
    people = counts.sum(axis=2, keepdims=True)
    most, most_others = people, people
    for axis in (0, 1):
        total = counts.sum(axis, keepdims=True)
        most = np.minimum(most, total)
        if not (of_people and axis == 0):
            rest = people.sum(axis, keepdims=True) - total
            most_others = np.minimum(most_others, rest)
    return np.minimum(most - (people - most_others), CANDIDATES - 1)


def widths_by_single_exchanges(counts: Integers, sizes: Sequence[int]) -> Integers:
    """Return by how much counts can change by one exchange of one person or two.

    Or by two of one person with different schools. For all counts at once, which is
    fast.
    """
    _, groups, categories = counts.shape
    different = ~np.eye(groups, dtype=bool)[:, None, :, None]
    different = different & ~np.eye(categories, dtype=bool)[:, None, :]
    # In how many schools two counts are large enough: [group, category] twice.
    pairs = {}
    for size in (1, CANDIDATES - 1):
        flat = (
            (counts >= size)
            .reshape(len(counts), groups * categories)
            .astype(np.float32)
        )
        pairs[size] = (flat.T @ flat).astype(np.int32).reshape(different.shape)
    widths = []
    starts = np.cumsum(sizes) - sizes
    for chosen in np.array_split(np.arange(len(sizes)), 1 + len(counts) // AT_ONCE):
        few = np.asarray(sizes)[chosen]
        first = starts[chosen[0]]
        part = counts[first : first + few.sum()]
        ends = np.cumsum(few) - few
        up, down = np.zeros_like(part), np.zeros_like(part)
        for size, everywhere in pairs.items():
            enough = part >= size
            # [school, group, category, other group, other category]
            straight = enough[:, :, :, None, None] & enough[:, None, None]
            crossed = straight.swapaxes(2, 4)
            elsewhere = everywhere - in_own_place(straight, ends, few)
            grows = crossed & different & (elsewhere > 0)
            up[grows.any(axis=(3, 4))] = size
            if size == 1:
                two = (part > 1).transpose(0, 2, 1)[:, None, :, :, None]
                donors = (grows & two & (elsewhere > 1)).any(axis=3)
                available = (donors * np.minimum(part, 2)[:, :, None]).sum(axis=3)
                up[available > 1] = CANDIDATES - 1
            elsewhere = everywhere.swapaxes(1, 3) - in_own_place(crossed, ends, few)
            shrinks = straight & different & (elsewhere > 0)
            down[shrinks.any(axis=(3, 4))] = size
        changes = [np.maximum.reduceat(change, ends, axis=0) for change in (up, down)]
        widths.append(changes[0] + changes[1])
    return np.concatenate(widths)


def in_own_place(pairs: Mask, starts: Integers, sizes: Integers) -> Integers:
    """Return for each school how many of its place have both counts."""
    if len(pairs) == len(sizes):
        return pairs.astype(np.int32)
    totals = np.add.reduceat(pairs, starts, axis=0, dtype=np.int32)
    return np.repeat(totals, sizes, axis=0)


def width_by_exchanges(
    counts: Integers, inside: tuple[int, int], cell: tuple[int, int]
) -> int:
    """Return by how much schools' count can change by several exchanges of one person.

    `inside` are the first school and the one after the last, `cell` is the group and
    category.
    """
    start, end = inside
    group, category = cell
    places = np.delete(counts, slice(start, end), axis=0)
    width = 0
    for grows in (True, False):
        # To grow, they need somebody of the same group and category in another place;
        # to shrink, of another group.
        partners = most_first(places, cell, of_group=grows)
        schools = most_first(counts[start:end], cell, of_group=not grows)
        table = np.concatenate([schools, partners])
        for school in range(len(schools)):
            while width < CANDIDATES - 1 and exchange(
                table, (school, group, category), len(schools), grows=grows
            ):
                width += 1
    return width


def most_first(counts: Integers, cell: tuple[int, int], *, of_group: bool) -> Integers:
    """Return the schools with most people of a category, of a group or of others."""
    if len(counts) <= PARTNERS:
        return counts
    group, category = cell
    people = counts[:, group, category]
    if not of_group:
        people = counts[:, :, category].sum(axis=1) - people
    return counts[np.argsort(-people, kind="stable")[:PARTNERS]]


def exchange(
    table: Integers, cell: tuple[int, int, int], first: int, *, grows: bool
) -> bool:
    """Let a count grow or shrink by one, if it can, and return whether it did.

    Of all exchanges with schools from `first` on, the one is chosen which leaves the
    smallest count the largest.
    """
    school, group, category = cell
    school_counts, partner_counts = table[school], table[first:]
    # The least of those who would shrink: [other school, other group, other category].
    if grows:
        spare = np.minimum(school_counts[group], school_counts[:, [category]])
        spare = np.minimum(partner_counts[:, [group]][:, :, [category]], spare)
        spare = np.minimum(spare, partner_counts)
    else:
        spare = np.minimum(school_counts, school_counts[group, category])
        spare = np.minimum(partner_counts[:, [group]], spare)
        spare = np.minimum(spare, partner_counts[:, :, [category]])
    spare[:, group] = spare[:, :, category] = 0
    if not spare.any():
        return False
    indices = np.unravel_index(int(spare.argmax()), spare.shape)
    partner, other_group, other_category = map(int, indices)
    step = 1 if grows else -1
    for sign, part in ((step, school), (-step, first + partner)):
        table[part, group, category] += sign
        table[part, other_group, other_category] += sign
        table[part, group, other_category] -= sign
        table[part, other_group, category] -= sign
    return True
