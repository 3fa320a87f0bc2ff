"""Decide which survey results are hidden, because they would identify people.

Published for one administration are, for each place (state, districts, schools) and
group (everyone, each grade, each value of other attributes), the number of people
and the distribution of each item. Nothing here reads the database; the decision is
stored with the results, and every page and file asks that.

The rules:

* A group of fewer people than the minimum is hidden, and so is a grade whose response
  rate is: its results begin with the number of people who have answered.
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
  hidden themselves. If a group of the district is too small, the district shows none.
  The same holds where the schools' totals and the district's sum together leave fewer
  than three candidates for a number of a school (`exchanges`), and where a school of
  the sum hides an item: the difference to the number of people would be its own.
* A hidden place shows none of its groups, and no place below it.
* Readers know what the wave before has shown, and these results before a recount. If
  hardly anybody has changed an answer, a group that is shown now tells what was hidden
  in it then, and subtracted from the sums of then, what others answered. So parts that
  were hidden before are hidden before others, and whatever the wave before has hidden
  stays hidden where the number of people differs by less than the minimum. The schools
  of a district show groups if they did so before: otherwise the difference of the
  district's figures would be those of schools that are left out of one of them. For
  the same reason, a sum of schools that show no groups is shown again only if it is of
  the same schools as when it was shown last. What
  readers have seen already stays as it is. (GaussSuppression of Statistics Norway keeps
  earlier suppressions in the same way, as `AdditionalSuppression`.)

Percentages and response rates are hidden with the group or item that they belong to,
and so are means of measures. In the means of a district or the state are only schools
that show their own: what all schools have together, minus those that are shown, would
be the mean of a hidden one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from reports.suppression.exchanges import CANDIDATES, are_interchangeable
from reports.suppression.tables import (
    EVERYONE,
    ROOT,
    Decision,
    GroupCounts,
    Integers,
    Mask,
    PlaceTree,
    Precedent,
)

MINIMUM_GROUP = 10
# Of the people of a place, before the places below it are not shown by an attribute.
MOST_LEFT_OUT = 0.2


def decide(
    tree: PlaceTree,
    groups: GroupCounts,
    items: Mapping[str, Integers],
    minimum: int = MINIMUM_GROUP,
    precedent: Precedent | None = None,
) -> Decision:
    """Return what is hidden in the results of one administration.

    `items` are counts [place, column, category]; skipped and not reached are
    categories, so they add up to `groups.people`. `precedent` is what was hidden of the
    same people before.
    """
    precedent = precedent or Precedent.none(groups)
    hidden = np.zeros(groups.people.shape, dtype=bool)
    hidden[:, EVERYONE] = hidden_places(tree, groups, minimum, precedent)
    counted = np.ones((len(tree), len(groups.attributes)), dtype=bool)
    decision = Decision(
        hidden, counted, np.zeros_like(counted), summed=dict(precedent.summed)
    )
    for number in range(len(groups.attributes)):
        hide_attribute(tree, groups, decision, number, minimum, precedent)
    for name, counts in items.items():
        hide_item(tree, groups, decision, name, counts, precedent)
    return decision


def primary_groups(groups: GroupCounts, minimum: int) -> Mask:
    """Return the groups that are hidden for their own size, and all in such places."""
    small = groups.too_small(minimum)
    return small | ((groups.people > 0) & small[:, [EVERYONE]])


def hidden_places(
    tree: PlaceTree, groups: GroupCounts, minimum: int, precedent: Precedent
) -> Mask:
    """Return the places that are hidden; all places below a hidden one are."""
    people = groups.people[:, EVERYONE]
    most = groups.most_people[:, EVERYONE]
    small = (people > 0) & (people < minimum)
    small |= precedent.again.groups[:, EVERYONE]
    first = precedent.first.groups[:, EVERYONE]
    hidden = np.zeros(len(tree), dtype=bool)
    hidden[0] = small[0]
    for parent in range(len(tree)):
        children = tree.children(parent)
        if hidden[parent]:
            hidden[children] = True
        elif len(children):
            limits = np.zeros_like(people[children]), most[children]
            hidden[children] = hide_people(
                people[children], limits, minimum, small[children], first[children]
            )
    return hidden


def counted_in_scores(people: NDArray[np.float64], hidden: Mask, minimum: int) -> Mask:
    """Return the schools that are in the means of larger places.

    `people` have the measure, and `hidden` schools have no report, or hide the measure
    or one of its items.
    """
    return ~hidden & (people >= minimum)


def hide_people(
    people: Integers,
    limits: tuple[Integers, Integers],
    minimum: int,
    hidden: Mask,
    first: Mask,
) -> Mask:
    """Return which parts of a shown number of people are hidden, `hidden` among them.

    `limits` are the least and the most that each part is known to be. Parts of `first`
    are hidden before others, and of these the smallest. If all parts
    with people are hidden, so are those without: which these are would tell more.
    """
    hidden = hidden.copy()
    wanted = np.minimum(widths(people, limits, np.ones_like(hidden)), CANDIDATES - 1)
    # Somebody is in a hidden part, because 0 is shown.
    limits = np.maximum(limits[0], people > 0), limits[1]
    while hidden.any():
        width = widths(people, limits, hidden)[hidden]
        if (
            hidden.sum() > 1
            and people[hidden].sum() >= minimum
            and (width >= wanted[hidden]).all()
        ):
            break
        shown = np.flatnonzero((people > 0) & ~hidden)
        if not len(shown):
            return np.ones_like(hidden)
        hidden[shown[np.lexsort((people[shown], ~first[shown]))[0]]] = True
    return hidden


def hide_attribute(
    tree: PlaceTree,
    groups: GroupCounts,
    decision: Decision,
    number: int,
    minimum: int,
    precedent: Precedent,
) -> None:
    """Hide groups of one attribute, from the schools upwards."""
    hidden, counted = decision.groups, decision.counted[:, number]
    attribute = np.array(groups.attributes[number])
    people = groups.people[:, attribute].copy()
    again = precedent.again.groups[:, attribute]
    too_small = groups.too_small(minimum)[:, attribute] | again
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
            are_many = left_out > MOST_LEFT_OUT * everyone.sum()
            was_divided = precedent.divided[place, number]
            if precedent.undivided[place, number] or are_many and not was_divided:
                below = tree.below(place)
                hidden[np.ix_(below, attribute)] = True
                counted[children] = ~hidden[children, EVERYONE]
                decision.undivided[place, number] = True
            people[place] = people[children[counted[children]]].sum(axis=0)
            small = (people[place] > 0) & (people[place] < minimum) | again[place]
            # The schools' own totals tell too much about a few hidden groups.
            hidden[place, attribute] |= small.any() or (
                decision.undivided[place, number]
                and tells_groups(tree, groups, decision, number, place, precedent)
            )
        elif too_small[place].any():
            everyone = groups.people[place, EVERYONE]
            most = np.minimum(groups.most_people[place, attribute], everyone)
            least = np.maximum(0, everyone - (most.sum() - most))
            hidden[place, attribute] = hide_people(
                *(people[place], (least, most), minimum, too_small[place]),
                precedent.first.groups[place, attribute],
            )
        counted[place] = not hidden[place, attribute].any()
    for place in np.flatnonzero(decision.undivided[:, number]).tolist():
        if not hidden[place, attribute].any():
            schools = frozenset(tree.leaves_of(place, decision.counted[:, number]))
            decision.summed[place, number] = schools


def tells_groups(
    tree: PlaceTree,
    groups: GroupCounts,
    decision: Decision,
    number: int,
    place: int,
    precedent: Precedent,
) -> bool:
    """Return whether a sum of schools that show no groups tells those of a school.

    Because the schools' totals and the sum leave too few candidates, or by subtraction
    from a sum of other schools that was shown before.
    """
    schools = tree.leaves_of(place, decision.counted[:, number])
    if precedent.summed.get((place, number), set(schools)) != set(schools):
        return True
    counts = groups.present_and_absent
    cell = place, number
    return tells_parts(tree, groups, decision, counts, cell, of_people=True)


def hide_item(
    tree: PlaceTree,
    groups: GroupCounts,
    decision: Decision,
    name: str,
    counts: Integers,
    precedent: Precedent,
) -> None:
    """Hide the item where counts of hidden groups could be bounded too narrowly."""
    first, again = precedent.first.of_item(name), precedent.again.of_item(name)
    hidden = decision.groups.copy()
    hidden[:, EVERYONE] |= again[:, EVERYONE]
    for parent in range(len(tree)):
        children = tree.children(parent)
        if hidden[parent, EVERYONE]:
            hidden[children, EVERYONE] = True
        elif len(children):
            hidden[children, EVERYONE] = hide_parts(
                groups.people[children, EVERYONE],
                counts[children, EVERYONE],
                hidden[children, EVERYONE],
                first[children, EVERYONE],
            )
    counted = decision.counted & ~hidden[:, [EVERYONE]]
    hidden[hidden[:, EVERYONE]] = True
    decision.items[name] = hidden
    decision.counted_items[name] = counted
    for place, number in np.argwhere(decision.undivided).tolist():
        columns = list(groups.attributes[number])
        if not hidden[place, columns].any() and (
            again[place, columns].any()
            or tells_items(tree, groups, decision, name, counts, (place, number))
        ):
            hidden[place, columns] = True
            counted[place, number] = False
            # And in larger places where no other one has figures.
            above = int(tree.parents[place])
            while above != ROOT and not counted[tree.children(above), number].any():
                hidden[above, columns] = True
                counted[above, number] = False
                above = int(tree.parents[above])
    published = decision.published(tree, groups, counts, name)
    people = published.sum(axis=2)
    for attribute in map(list, groups.attributes):
        rows = hidden[:, attribute]
        # Only of places that are left out of the next larger place's figures.
        rows |= again[:, attribute] & rows.any(axis=1, keepdims=True)
        hidden[:, attribute] = rows
        is_partly_hidden = rows.any(axis=1) & ~hidden[:, EVERYONE]
        is_partly_hidden &= (~rows & (people[:, attribute] > 0)).any(axis=1)
        for place in np.flatnonzero(is_partly_hidden).tolist():
            hidden[place, attribute] = hide_parts(
                *(people[place, attribute], published[place, attribute]),
                *(rows[place], first[place, attribute]),
            )


def tells_items(
    tree: PlaceTree,
    groups: GroupCounts,
    decision: Decision,
    name: str,
    counts: Integers,
    cell: tuple[int, int],
) -> bool:
    """Return whether a sum of schools that show no groups tells their items.

    Because it would not be of the same schools as the number of people, or because the
    schools' totals and the sum leave too few candidates.
    """
    place, number = cell
    schools = tree.leaves_of(place, decision.counted[:, number])
    return bool(decision.items[name][schools, EVERYONE].any()) or tells_parts(
        tree, groups, decision, counts, cell
    )


def tells_parts(
    tree: PlaceTree,
    groups: GroupCounts,
    decision: Decision,
    counts: Integers,
    cell: tuple[int, int],
    *,
    of_people: bool = False,
) -> bool:
    """Return whether a sum leaves too few candidates for counts in its schools.

    Or in the districts below the state. Known of the schools are their totals.
    """
    place, number = cell
    counted = decision.counted[:, number]
    children = tree.children(place)
    parts = [tree.leaves_of(child, counted) for child in children[counted[children]]]
    sizes = [len(schools) for schools in parts if schools]
    schools = [school for schools in parts for school in schools]
    if len(sizes) <= 1:
        return bool(sizes)
    chosen = counts[np.ix_(schools, groups.attributes[number])]
    levels = [[1] * len(schools)]
    if sizes != levels[0]:
        levels.append(sizes)
    return not all(
        are_interchangeable(chosen, level, of_people=of_people) for level in levels
    )


def hide_parts(people: Integers, counts: Integers, hidden: Mask, first: Mask) -> Mask:
    """Return which parts of a shown sum hide an item, `hidden` ones among them.

    `counts` are [part, category]. Parts of `first` are hidden before others. Of these,
    the part that leaves the fewest narrow counts is next; of several, the smallest.
    """
    hidden = hidden.copy()
    limits = np.zeros_like(counts), people[:, None] * np.ones_like(counts)
    wanted = widths(counts, limits, people > 0)
    while hidden.any() and narrow_counts(counts, limits, hidden, wanted):
        best: tuple[bool, int, int, int] | None = None
        for part in np.flatnonzero((people > 0) & ~hidden).tolist():
            hidden[part] = True
            left = narrow_counts(counts, limits, hidden, wanted)
            hidden[part] = False
            found = (not first[part], left, int(people[part]), part)
            best = min(best or found, found)
        if best is None:
            break
        hidden[best[-1]] = True
    return hidden


def narrow_counts(
    counts: Integers, limits: tuple[Integers, Integers], hidden: Mask, wanted: Integers
) -> int:
    """Return how many hidden counts have fewer candidates than they should.

    That is three, or as many as the sum of all parts leaves.
    """
    width = widths(counts, limits, hidden)[hidden]
    return int((width < np.minimum(wanted[hidden], CANDIDATES - 1)).sum())


def widths(
    counts: Integers, limits: tuple[Integers, Integers], hidden: Mask
) -> Integers:
    """Return by how much each count can vary if these parts are hidden.

    Known is what they are together, and the least and most of each. Without other
    limits than the parts' numbers of people, the bounds are exact.
    """
    least, most = limits
    union = counts[hidden].sum(axis=0)
    upper = np.minimum(most, union - (least[hidden].sum(axis=0) - least))
    lower = np.maximum(least, union - (most[hidden].sum(axis=0) - most))
    return np.asarray(upper - lower)
