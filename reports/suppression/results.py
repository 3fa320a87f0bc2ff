"""Decide which survey results are hidden, because they would identify people.

Published for one administration are, for each place (state, districts, schools) and
group (everyone, each grade, each value of other attributes), the number of people
and the distribution of each item. Nothing here reads the database; the decision is
stored with the results, and every page and file asks that.

The rules:

* A group of fewer people than the minimum is hidden.
* In a sum that is published (everyone in a school is its grades together, a district
  is its schools together), the hidden parts are at least two, and together at least
  the minimum of people. Further parts are hidden for this, the smallest first.
* Where a hidden count of an item could still be bounded to fewer than three numbers,
  further parts of the sum hide this item, up to all. Then only the total is known,
  and what follows from the total by itself: if nobody in a school chose *never*,
  nobody in its grade 4 did.
* If a school hides a group, all of its people are left out of the district's figures
  by this attribute. Otherwise the district's number minus those of the other schools
  would be the hidden one. So no number is a part of two sums, and each sum can be
  looked at alone.
* If this would leave out too many people, the schools of this district are not shown
  by this attribute at all, and the district's figures have all schools that are not
  hidden themselves. What is then known of a school's groups is only what both totals
  say.
* A hidden place shows none of its groups, and no place below it.

Means of measures, percentages and response rates are hidden with the group or item
that they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reports.suppression.tables import (
    EVERYONE,
    ROOT,
    Decision,
    GroupCounts,
    Integers,
    Mask,
    PlaceTree,
)

MINIMUM_GROUP = 10
CANDIDATES = 3
# Of the people of a place, before the places below it are not shown by an attribute.
MOST_LEFT_OUT = 0.2


def decide(
    tree: PlaceTree,
    groups: GroupCounts,
    items: Mapping[str, Integers],
    minimum: int = MINIMUM_GROUP,
) -> Decision:
    """Return what is hidden in the results of one administration.

    `items` are counts [place, column, category]; skipped and not reached are
    categories, so they add up to `groups.people`.
    """
    bases = BaseParts(groups, minimum)
    hidden = np.zeros(groups.people.shape, dtype=bool)
    hidden[:, EVERYONE] = hidden_places(tree, bases, minimum)
    counted = np.ones((len(tree), len(groups.attributes)), dtype=bool)
    decision = Decision(hidden, counted, np.zeros_like(counted))
    for number in range(len(groups.attributes)):
        hide_attribute(tree, groups, bases, decision, number)
    for name, counts in items.items():
        hide_item(tree, groups, decision, name, counts)
    return decision


def primary_groups(groups: GroupCounts, minimum: int) -> Mask:
    """Return the groups that are hidden for their own size, and all in such places."""
    people = groups.people
    small = (people > 0) & (people < minimum)
    return small | ((people > 0) & small[:, [EVERYONE]])


def hidden_places(tree: PlaceTree, bases: BaseParts, minimum: int) -> Mask:
    """Return the places that are hidden; all places below a hidden one are."""
    people = bases.people[:, EVERYONE]
    hidden = np.zeros(len(tree), dtype=bool)
    hidden[0] = 0 < people[0] < minimum
    for parent in range(len(tree)):
        children = tree.children(parent)
        if hidden[parent]:
            hidden[children] = True
        elif len(children):
            cells = [(int(child), EVERYONE) for child in children]
            hidden[children] = bases.hide(cells)
    return hidden


@dataclass(frozen=True)
class BaseParts:
    """Numbers of people that add up to a published one."""

    groups: GroupCounts
    minimum: int

    @property
    def people(self) -> Integers:
        return self.groups.people

    def hide(
        self, cells: list[tuple[int, int]], people: Integers | None = None
    ) -> Mask:
        """Return which parts of a shown sum are hidden.

        `people` are the numbers, if some people of these cells are left out.
        """
        places, columns = map(np.array, zip(*cells, strict=True))
        if people is None:
            people = self.people[places, columns]
        most = np.maximum(self.groups.most_people[places, columns], people)
        hidden = (people > 0) & (people < self.minimum)
        while hidden.any() and not self._are_protected(people, most, hidden):
            shown = np.flatnonzero((people > 0) & ~hidden)
            if not len(shown):
                break
            hidden[shown[np.argmin(people[shown])]] = True
        return hidden

    def _are_protected(self, people: Integers, most: Integers, hidden: Mask) -> bool:
        """Test that the hidden parts are two, not few people, and can vary.

        Everybody knows that a hidden part has somebody, how many people are invited,
        and what the hidden parts are together.
        """
        parts, limits = people[hidden], most[hidden]
        union = parts.sum()
        if len(parts) < 2 or union < self.minimum:
            return False
        least = np.maximum(1, union - (limits.sum() - limits))
        largest = np.minimum(limits, union - (len(parts) - 1))
        # As many candidates as the sum of all parts leaves by itself.
        occupied = people > 0
        whole, room = people[occupied].sum(), most[occupied].sum()
        wanted = np.minimum(limits, whole) - np.maximum(1, whole - (room - limits))
        return bool((largest - least >= np.minimum(wanted, CANDIDATES - 1)).all())


def hide_attribute(
    tree: PlaceTree,
    groups: GroupCounts,
    bases: BaseParts,
    decision: Decision,
    number: int,
) -> None:
    """Hide groups of one attribute, from the schools upwards."""
    hidden, counted = decision.groups, decision.counted[:, number]
    attribute = np.array(groups.attributes[number])
    people = groups.people[:, attribute].copy()
    for place in range(len(tree) - 1, ROOT, -1):
        if hidden[place, EVERYONE]:
            # Also groups with nobody: which these are tells about the place.
            hidden[place, attribute] = True
            counted[place] = False
            continue
        children = tree.children(place)
        if len(children):
            everyone = groups.people[children, EVERYONE]
            left_out = everyone[~counted[children]].sum()
            if left_out > MOST_LEFT_OUT * everyone.sum():
                below = tree.below(place)
                hidden[np.ix_(below, attribute)] = True
                counted[children] = ~hidden[children, EVERYONE]
                decision.undivided[place, number] = True
            people[place] = people[children[counted[children]]].sum(axis=0)
        cells = [(place, int(column)) for column in attribute]
        hidden[place, attribute] = bases.hide(cells, people[place])
        counted[place] = not hidden[place, attribute].any()


def hide_item(
    tree: PlaceTree,
    groups: GroupCounts,
    decision: Decision,
    name: str,
    counts: Integers,
) -> None:
    """Hide the item where counts of hidden groups could be bounded too narrowly."""
    hidden = decision.groups.copy()
    for parent in range(len(tree)):
        children = tree.children(parent)
        if hidden[parent, EVERYONE]:
            hidden[children, EVERYONE] = True
        elif len(children):
            hidden[children, EVERYONE] = hide_parts(
                groups.people[children, EVERYONE],
                counts[children, EVERYONE],
                hidden[children, EVERYONE],
            )
    counted = decision.counted & ~hidden[:, [EVERYONE]]
    hidden[hidden[:, EVERYONE]] = True
    decision.items[name] = hidden
    decision.counted_items[name] = counted
    published = decision.published(tree, groups, counts, name)
    people = published.sum(axis=2)
    for attribute in map(list, groups.attributes):
        for place in np.flatnonzero(~hidden[:, EVERYONE]).tolist():
            row = hidden[place, attribute]
            if row.any() and not row[people[place, attribute] > 0].all():
                hidden[place, attribute] = hide_parts(
                    people[place, attribute], published[place, attribute], row
                )


def hide_parts(people: Integers, counts: Integers, hidden: Mask) -> Mask:
    """Return which parts of a shown sum hide an item, `hidden` ones among them.

    `counts` are [part, category]. The part that leaves the fewest narrow counts is
    hidden next; of several, the smallest.
    """
    hidden = hidden.copy()
    total = counts.sum(axis=0)
    while hidden.any() and narrow_counts(people, counts, hidden, total):
        best: tuple[int, int, int] | None = None
        for part in np.flatnonzero((people > 0) & ~hidden).tolist():
            hidden[part] = True
            left = narrow_counts(people, counts, hidden, total)
            hidden[part] = False
            found = (left, int(people[part]), part)
            best = min(best or found, found)
        if best is None:
            break
        hidden[best[2]] = True
    return hidden


def narrow_counts(
    people: Integers, counts: Integers, hidden: Mask, total: Integers
) -> int:
    """Return how many hidden counts have fewer candidates than they should.

    Known are the numbers of people of the parts, and for each category what the
    hidden parts have together. The bounds of a table with these margins are exact.
    """
    parts, union = people[hidden][:, None], counts[hidden].sum(axis=0)
    everybody = union.sum()
    width = np.minimum(parts, union) - np.maximum(0, parts + union - everybody)
    wanted = np.minimum(parts, total) - np.maximum(0, parts + total - total.sum())
    return int((width < np.minimum(wanted, CANDIDATES - 1)).sum())
