"""Decide which survey results are hidden, because they would identify people.

Published for one administration are, for each place (state, districts, schools) and
group (everyone, each grade, each value of other attributes), the number of people
and the distribution of each item. Nothing here reads the database; the decision is
stored with the results, and every page and file asks that.

The rules:

* A group of fewer people than the minimum is hidden, and so is every group of a
  place without a report.
* The hidden groups of an attribute in a place, or of a group in the places of a
  district, are as many people as the minimum: otherwise subtracting the shown ones
  from the total gives the answers of a small group.
* Every hidden number has at least three candidates, whatever is calculated from all
  that is shown and from the public numbers of invited people; or as many as the
  totals that contain it leave (`prior`). `moves` proves this for each number.
* For this, further groups are hidden, and in shown groups further items.

Means of measures, percentages and response rates are hidden with the group or item
that they belong to: a mean times its people is a sum over the same cells, so that it
would be one more equation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reports.suppression.moves import (
    Answers,
    Kind,
    People,
    fewest_people,
)
from reports.suppression.prior import needed_for_bases, needed_for_items
from reports.suppression.search import Search
from reports.suppression.tables import (
    EVERYONE,
    Decision,
    GroupCounts,
    Integers,
    Mask,
    PlaceTree,
)

MINIMUM_GROUP = 10
# Showing cells again takes an audit for each of them.
MOST_CELLS_TO_DROP = 60


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
    hidden = hidden_groups(tree, groups, list(items.values()), minimum)
    return Decision(
        hidden,
        {
            name: hidden_item(tree, groups, hidden, counts)
            for name, counts in items.items()
        },
    )


def primary_groups(groups: GroupCounts, minimum: int) -> Mask:
    """Return the groups that are hidden for their own size."""
    people = groups.people
    hidden = groups.without_report | (people[:, EVERYONE] < minimum)
    small = hidden[:, None] | ((people < minimum) & (people > 0))
    return small & (groups.most_people > 0)


def hidden_groups(
    tree: PlaceTree,
    groups: GroupCounts,
    items: Sequence[Integers] = (),
    minimum: int = MINIMUM_GROUP,
) -> Mask:
    """Return the groups to hide: the small ones, and others that protect them."""
    primary = primary_groups(groups, minimum)
    search = GroupSearch(tree, groups, primary, minimum)
    search.run()
    while search.join_small_unions():
        search.run()
    # Answers that two people have in common are rarely missing, and slow to count.
    search.items = items
    search.run()
    if search.hidden.size <= MOST_CELLS_TO_DROP:
        search.drop_needless(primary)
    return search.hidden


def hidden_item(
    tree: PlaceTree,
    groups: GroupCounts,
    hidden: Mask,
    counts: Integers,
) -> Mask:
    """Return where an item is hidden; `hidden` are the hidden groups."""
    search = ItemSearch(tree, groups, hidden, counts.astype(np.int64))
    search.run()
    if search.hidden.size <= MOST_CELLS_TO_DROP:
        search.drop_needless(hidden)
    return search.hidden


class GroupSearch(Search):
    """Hide numbers of people."""

    def __init__(
        self, tree: PlaceTree, groups: GroupCounts, primary: Mask, minimum: int
    ) -> None:
        super().__init__(tree, groups, primary)
        self.minimum = minimum
        self.items: Sequence[Integers] = ()
        self.counts = groups.people.astype(np.int64)[:, :, None]

    @property
    def kind(self) -> Kind:
        fewest = fewest_people(self.hidden | self.occupied, self.groups.people)
        return People(self.groups.people, fewest, self.groups.most_people)

    def free(self) -> tuple[Integers, Integers]:
        moves = self.ranges.pair_moves(
            self.hidden, self.groups.people, self.groups.most_people, self.items
        )
        return self.ranges.find_with_people(moves, self.counts)

    def needed(self) -> Integers:
        if self.hidden[self.occupied].all():
            return np.zeros_like(self.counts)
        return needed_for_bases(self.tree, self.groups, self.hidden)[:, :, None]

    def give_up(self, place: int, column: int) -> None:
        """Hide everything in the next larger place that still shows something."""
        for above in self.tree.path(place):
            below = self.tree.below(above)
            exists = self.groups.most_people[below] > 0
            if (exists & ~self.hidden[below]).any():
                # With groups without people, which are hidden in a hidden place.
                self.hidden[below] |= exists
                return

    def is_safe(self) -> bool:
        return super().is_safe() and not self.small_unions()

    def join_small_unions(self) -> bool:
        """Hide one more cell in each equation whose hidden ones are too few people."""
        unions = self.small_unions()
        for cells in unions:
            shown = [
                cell for cell in cells if self.occupied[cell] and not self.hidden[cell]
            ]
            # None is left if a cell that was hidden for another total is in this one.
            if shown:
                smallest = min(shown, key=lambda cell: int(self.groups.people[cell]))
                self.hidden[smallest] = True
        return bool(unions)

    def small_unions(self) -> list[list[tuple[int, int]]]:
        """Return the parts of each shown total whose hidden parts are few people."""
        unions = []
        for cells in self.parts_of_shown_totals():
            people = sum(int(self.groups.people[c]) for c in cells if self.hidden[c])
            if 0 < people < self.minimum:
                unions.append(cells)
        return unions

    def parts_of_shown_totals(self) -> list[list[tuple[int, int]]]:
        parts = []
        shown = ~self.hidden
        for place in np.flatnonzero(shown[:, EVERYONE]).tolist():
            for attribute in self.groups.attributes:
                if self.hidden[place, list(attribute)].any():
                    parts.append([(place, column) for column in attribute])
        for parent in np.unique(self.tree.parents[1:]).tolist():
            children = np.flatnonzero(self.tree.parents == parent).tolist()
            columns = shown[parent] & self.hidden[children].any(axis=0)
            for column in np.flatnonzero(columns).tolist():
                parts.append([(child, column) for child in children])
        return parts


class ItemSearch(Search):
    """Hide one item."""

    def __init__(
        self,
        tree: PlaceTree,
        groups: GroupCounts,
        hidden: Mask,
        counts: Integers,
    ) -> None:
        super().__init__(tree, groups, hidden)
        self.counts = counts
        self.answers = Answers(counts)

    @property
    def kind(self) -> Kind:
        return self.answers

    def free(self) -> tuple[Integers, Integers]:
        return self.ranges.find(self.answers, self.hidden, self.counts)

    def needed(self) -> Integers:
        if self.hidden[self.occupied].all():
            return np.zeros_like(self.counts)
        needed = needed_for_items(self.tree, self.groups, self.hidden, self.counts)
        leaves = self.tree.leaves
        shown = leaves[~self.hidden[leaves, EVERYONE]]
        for attribute in map(list, self.groups.attributes):
            if self.hidden[:, attribute][self.occupied[:, attribute]].all():
                # Of an item that is nowhere shown by this attribute, only the totals
                # of schools are known: in each the answers are a table with two
                # margins, in which these alone decide what is possible.
                needed[np.ix_(shown, attribute)] = 0
        return needed

    def give_up(self, place: int, column: int) -> None:
        attribute = list(self.groups.attribute_of(column))
        whole = self.hidden[:, attribute][self.occupied[:, attribute]].all()
        if column == EVERYONE or whole:
            self.hidden |= self.occupied
        else:
            self.hidden[:, attribute] |= self.occupied[:, attribute]
