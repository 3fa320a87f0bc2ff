"""Compute what the totals that contain a hidden cell say about it by themselves.

If nobody in a school chose *never*, nobody in its grade 4 did, and hiding numbers of
other grades cannot change that. So a hidden number needs three candidates, or as
many as these totals, the public numbers of invited people and a shown base leave:

* at most the number in each shown group that contains the hidden one (everyone in
  the school, grade 4 of the district, and so on upwards);
* where 48 of 49 invited people answered, all but one in each grade did;
* of 40 people in the school 38 chose *always*, so a grade of 5 has at least 3.
"""

from __future__ import annotations

import numpy as np

from reports.suppression.moves import fewest_people
from reports.suppression.tables import (
    EVERYONE,
    ROOT,
    UNKNOWN,
    GroupCounts,
    Integers,
    Mask,
    PlaceTree,
)

ENOUGH_CANDIDATES = 3


def needed_for_bases(tree: PlaceTree, groups: GroupCounts, hidden: Mask) -> Integers:
    """Return by how much the number of people of each hidden group has to vary."""
    most = np.minimum(bounds_of_totals(tree, groups.people, hidden), groups.most_people)
    known = groups.invited != UNKNOWN
    absent = np.where(known, groups.most_people - groups.people, groups.people[0, 0])
    fewest = np.maximum(
        fewest_people(hidden, groups.people),
        np.where(known, groups.most_people - bounds_of_totals(tree, absent, hidden), 0),
    )
    width = np.minimum(most - fewest, ENOUGH_CANDIDATES - 1)
    return np.where(hidden, np.maximum(width, 0), 0)


def needed_for_items(
    tree: PlaceTree,
    groups: GroupCounts,
    hidden: Mask,
    counts: Integers,
) -> Integers:
    """Return by how much each count of a category has to vary."""
    people = groups.people
    width = np.empty_like(counts)
    for category in range(counts.shape[2]):
        chosen = counts[:, :, category]
        most = np.minimum(bounds_of_totals(tree, chosen, hidden), people)
        others = bounds_of_totals(tree, people - chosen, hidden)
        fewest = np.maximum(people - others, 0)
        width[:, :, category] = most - fewest
    width = np.clip(width, 0, ENOUGH_CANDIDATES - 1)
    return np.where(hidden[:, :, None], width, 0)


def bounds_of_totals(tree: PlaceTree, numbers: Integers, hidden: Mask) -> Integers:
    """Return for each hidden cell the smallest shown total that contains it."""
    bounds = numbers.astype(np.int64)
    largest = np.int64(numbers.max(initial=0)) + (1 << 30)
    for places in tree.by_depth:
        parents = tree.parents[places]
        above = (
            bounds[parents]
            if parents[0] != ROOT
            else np.full_like(bounds[places], largest)
        )
        rows = np.where(hidden[places], above, bounds[places])
        rows = np.where(hidden[places], np.minimum(rows, rows[:, EVERYONE, None]), rows)
        bounds[places] = rows
    return bounds
