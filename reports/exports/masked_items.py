"""Choose which items the rows of a place leave out, because few people answered them.

Results pages hide such an item. The rows of the same people would be its figures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reports.answers.people import Ints
from reports.releases.frozen_people import SchoolPeople

Flags = NDArray[np.bool_]
# An attribute and a value, as `GroupResults` has them.
PageGroup = tuple[str, str]


def masked_items(
    groups: Sequence[Sequence[PageGroup]],
    answered: Mapping[str, Ints],
    hidden: Mapping[PageGroup, Collection[str]],
    minimum: int,
) -> list[frozenset[str]]:
    """Return the items that each class of a place leaves out.

    `groups` are those of the pages that a class is in, `answered` how many people of
    each class have answered an item, and `hidden` the items that the pages hide.
    """
    names = sorted(set(answered).union(*hidden.values()))
    nobody = np.zeros(len(groups), dtype=np.int64)
    people = np.array([answered.get(name, nobody) for name in names], dtype=np.int64)
    people = people.reshape(len(names), len(groups))
    masked = np.array(
        [
            [
                any(name in hidden.get(group, ()) for group in row_groups)
                for row_groups in groups
            ]
            for name in names
        ],
        dtype=np.bool_,
    ).reshape(people.shape)
    masked |= (people > 0) & (people < minimum)
    every_group = sorted({group for row_groups in groups for group in row_groups})
    members = np.array(
        [[group in row_groups for row_groups in groups] for group in every_group]
    )
    for row in np.flatnonzero(masked.any(axis=1)).tolist():
        _mask_complements(masked[row], people[row], members, minimum)
    return [
        frozenset(name for name, flag in zip(names, column, strict=True) if flag)
        for column in masked.T.tolist()
    ]


def _mask_complements(
    masked: Flags, people: Ints, members: Flags, minimum: int
) -> None:
    """Mask further classes until no page minus its rows is the answers of a few.

    The classes with the fewest answers first.
    """
    while True:
        left_out = members.astype(np.int64) @ (people * masked)
        few = (left_out > 0) & (left_out < minimum)
        candidates = members[few].any(axis=0) & ~masked & (people > 0)
        if not candidates.any():
            return
        fewest = np.where(candidates, people, people.max() + 1).argmin()
        masked[fewest] = True


def answered_by_class(
    schools: Sequence[SchoolPeople], classes: Sequence[int]
) -> dict[str, Ints]:
    """Count who has answered each item. `classes` has one for each group of people."""
    answered: dict[str, Ints] = {}
    start, width = 0, max(classes, default=-1) + 1
    for school in schools:
        school_classes = np.array(
            classes[start : start + len(school.groups)], dtype=np.int64
        )
        start += len(school.groups)
        if school.answered is None or not school.items:
            continue
        bits = np.unpackbits(school.answered, axis=1)[:, : len(school.items)]
        of_people = school_classes[school.group]
        for number in np.unique(of_people).tolist():
            counts = bits[of_people == number].sum(axis=0, dtype=np.int64)
            for name, count in zip(school.items, counts.tolist(), strict=True):
                of_item = answered.setdefault(name, np.zeros(width, dtype=np.int64))
                of_item[number] += count
    return answered
