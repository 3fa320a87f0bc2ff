"""Decide which survey results are hidden, because they would identify people.

Published for one administration are, for each place (state, districts, schools) and
group (everyone, each grade, each value of other attributes), the number of people
and the distribution of each item. Nothing here reads the database; the decision is
stored with the results, and every page and file asks that.

The rules:

* A group of fewer people than the minimum is hidden, and so is a grade whose response
  rate is: its results begin with the number of people who have answered.
* An item is hidden where fewer people than the minimum have answered it.
* A small place is a part of the larger one together with other small ones, if they have
  the minimum of people together, and is left out of it otherwise: then the larger place
  is a sum of what is shown, and no other place has to be hidden. The same holds for an
  item of a place.
* In a school, the hidden groups of an attribute are at least two, and together at least
  the minimum of people. Further groups are hidden for this, the smallest first. So are
  groups that, with those of other attributes, isolate fewer people than the minimum
  (`dependent_groups`).
* Where a hidden count of an item could still be bounded to fewer than three numbers,
  further groups hide this item, up to all. Then only the total is known,
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
from dataclasses import dataclass
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from reports.suppression.dependent_groups import DependentGroups

MINIMUM_GROUP = 10
# Of the people of a place, before the places below it are not shown by an attribute.
MOST_LEFT_OUT = 0.2


def decide(
    tree: PlaceTree,
    groups: GroupCounts,
    items: Mapping[str, Integers],
    minimum: int = MINIMUM_GROUP,
    precedent: Precedent | None = None,
    *,
    answered: Mapping[str, Integers] | None = None,
    dependent: DependentGroups | None = None,
) -> Decision:
    """Return what is hidden in the results of one administration.

    `items` are counts [place, column, category]; skipped and not reached are
    categories, so they add up to `groups.people`. Tables named "item option" are
    options of a multiple choice. `answered` are the people who answered an item:
    [place, column]; without them, everybody did. `precedent` is what was hidden of the
    same people before. `dependent` groups, and items in them, are hidden because sums
    of overlapping groups would tell of a few people.
    """
    precedent = precedent or Precedent.none(groups)
    hidden = np.zeros(groups.people.shape, dtype=bool)
    counted = np.ones((len(tree), len(groups.attributes)), dtype=bool)
    decision = Decision(
        *(hidden, counted, np.zeros_like(counted), np.ones(len(tree), dtype=bool)),
        summed=dict(precedent.summed),
    )
    hide_places(tree, groups, decision, minimum, precedent)
    small = groups.too_small(minimum) | precedent.again.groups
    if dependent:
        small |= dependent.groups
    for number in range(len(groups.attributes)):
        hide_attribute(
            *(tree, groups, decision, number, small, minimum, precedent, dependent)
        )
    tables: dict[str, list[str]] = {}
    for name in items:
        tables.setdefault(name.partition(" ")[0], []).append(name)
    for item, names in tables.items():
        answers = (answered or {}).get(item, groups.people)
        of_item = ItemTables(
            {name: items[name] for name in names},
            answers,
            dependent.items[item] if dependent else np.zeros_like(hidden),
        )
        hide_item_of_places(tree, groups, decision, of_item, minimum, precedent)
        for name in names:
            hide_item(
                *(tree, groups, decision, name, of_item, minimum, precedent, dependent)
            )
    return decision


@dataclass(frozen=True)
class ItemTables:
    """The tables of one item: its own, and one for each option."""

    counts: Mapping[str, Integers]
    # [place, column]
    answered: Integers
    # Groups in which the item would tell of a few people: [place, column].
    dependent: Mask


def primary_groups(groups: GroupCounts, minimum: int) -> Mask:
    """Return the groups that are hidden for their own size, and all in such places."""
    small = groups.too_small(minimum)
    return small | ((groups.people > 0) & small[:, [EVERYONE]])


def few_answers(answered: Integers, minimum: int) -> Mask:
    """Return where somebody has answered, but fewer people than the minimum."""
    return (answered > 0) & (answered < minimum)


def hide_places(
    tree: PlaceTree,
    groups: GroupCounts,
    decision: Decision,
    minimum: int,
    precedent: Precedent,
) -> None:
    """Hide small places, and all places below them.

    Hidden places are a part of the larger place only together. Otherwise it has the
    people of the others alone, so no further place has to be hidden.
    """
    hidden, counted = decision.groups[:, EVERYONE], decision.counted_all
    hidden |= small_places(tree, groups, minimum, precedent)
    people = groups.people[:, EVERYONE]
    most = groups.most_people[:, EVERYONE]
    published = people.copy()
    for place in range(len(tree) - 1, ROOT, -1):
        children = tree.children(place)
        if hidden[place] or not len(children):
            continue
        together = hidden[children]
        if together.any():
            limits = np.zeros_like(people[children]), most[children]
            all_parts = np.ones_like(together)
            wanted = np.minimum(
                widths(people[children], limits, all_parts), CANDIDATES - 1
            )
            limits = np.maximum(limits[0], people[children] > 0), limits[1]
            width = widths(people[children], limits, together)
            counted[children[together]] = (
                together.sum() > 1
                and people[children[together]].sum() >= minimum
                and (width >= wanted)[together].all()
                and are_same_as_before(
                    precedent, precedent.first.groups[children, EVERYONE], together
                )
            )
        published[place] = published[children[counted[children]]].sum()
        if published[place] < minimum:
            hidden[place] = people[place] > 0
            counted[children] = True
            published[place] = people[place]


def small_places(
    tree: PlaceTree, groups: GroupCounts, minimum: int, precedent: Precedent
) -> Mask:
    """Return the places with few people, and those below them."""
    people = groups.people[:, EVERYONE]
    small = (people > 0) & (people < minimum) | precedent.again.groups[:, EVERYONE]
    for place in range(1, len(tree)):
        small[place] |= small[tree.parents[place]]
    return small


def are_same_as_before(precedent: Precedent, before: Mask, hidden: Mask) -> bool:
    """Return whether the hidden parts of a sum are those that were hidden before.

    Otherwise the sums of two waves, subtracted, would be those of other parts.
    """
    return not precedent.is_known or bool((before == hidden).all())


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
    small: Mask,
    minimum: int,
    precedent: Precedent,
    dependent: DependentGroups | None,
) -> None:
    """Hide groups of one attribute from the schools upwards, the `small` ones first."""
    hidden, counted = decision.groups, decision.counted[:, number]
    attribute = np.array(groups.attributes[number])
    people = groups.people[:, attribute].copy()
    again = precedent.again.groups[:, attribute]
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
            few = (people[place] > 0) & (people[place] < minimum) | again[place]
            # The schools' own totals tell too much about a few hidden groups.
            hidden[place, attribute] |= few.any() or (
                decision.undivided[place, number]
                and (
                    tells_groups(tree, groups, decision, number, place, precedent)
                    or (
                        dependent is not None
                        and dependent.isolate_in_sum(
                            tree, groups, decision, (place, number)
                        )
                    )
                )
            )
        else:
            hidden[place, attribute] = hide_groups(
                groups, place, attribute, small[place], minimum, precedent
            )
        counted[place] = not hidden[place, attribute].any()
    for place in np.flatnonzero(decision.undivided[:, number]).tolist():
        if not hidden[place, attribute].any():
            schools = frozenset(tree.leaves_of(place, decision.counted[:, number]))
            decision.summed[place, number] = schools


def hide_groups(
    groups: GroupCounts,
    place: int,
    attribute: Integers,
    small: Mask,
    minimum: int,
    precedent: Precedent,
) -> Mask:
    """Return which groups of a place are hidden: `small` ones [column] and others."""
    if not small[attribute].any():
        return np.zeros(len(attribute), dtype=bool)
    everyone = groups.people[place, EVERYONE]
    most = np.minimum(groups.most_people[place, attribute], everyone)
    least = np.maximum(0, everyone - (most.sum() - most))
    return hide_people(
        *(groups.people[place, attribute], (least, most), minimum, small[attribute]),
        precedent.first.groups[place, attribute],
    )


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


def hide_item_of_places(
    tree: PlaceTree,
    groups: GroupCounts,
    decision: Decision,
    item: ItemTables,
    minimum: int,
    precedent: Precedent,
) -> None:
    """Hide the item in places in which few people have answered it.

    As with places themselves: those that hide it are a part of the larger place's
    figures together, or not at all.
    """
    hidden = decision.groups[:, EVERYONE].copy()
    first = np.zeros_like(hidden)
    for name in item.counts:
        hidden |= precedent.again.of_item(name)[:, EVERYONE]
        first |= precedent.first.of_item(name)[:, EVERYONE]
    answered = item.answered[:, EVERYONE].copy()
    hidden |= few_answers(answered, minimum)
    counted = decision.counted_all.copy()
    people = groups.people[:, EVERYONE].copy()
    tables = [counts[:, EVERYONE].copy() for counts in item.counts.values()]
    for place in range(len(tree) - 1, ROOT, -1):
        children = tree.children(place)
        if decision.groups[place, EVERYONE] or not len(children):
            continue
        parts = children[counted[children]]
        together = hidden[parts]
        if together.any() and not (
            together.sum() > 1
            and answered[parts[together]].sum() >= minimum
            and are_same_as_before(precedent, first[parts], together)
            and not any(
                has_narrow_counts(people[parts], counts[parts], together)
                for counts in tables
            )
        ):
            counted[parts[together]] = False
            parts = parts[~together]
        for numbers in (people, answered, *tables):
            numbers[place] = numbers[parts].sum(axis=0)
        hidden[place] |= (
            few_answers(answered[[place]], minimum).any() or not people[place]
        )
    for name in item.counts:
        decision.items[name] = decision.groups.copy()
        decision.items[name][hidden] = True
        decision.counted_all_items[name] = counted


def has_narrow_counts(people: Integers, counts: Integers, hidden: Mask) -> bool:
    """Return whether a hidden count of a shown sum has fewer than three candidates."""
    limits = np.zeros_like(counts), people[:, None] * np.ones_like(counts)
    return narrow_counts(counts, limits, hidden, widths(counts, limits, people > 0)) > 0


def hide_item(
    tree: PlaceTree,
    groups: GroupCounts,
    decision: Decision,
    name: str,
    item: ItemTables,
    minimum: int,
    precedent: Precedent,
    dependent: DependentGroups | None,
) -> None:
    """Hide the item in groups where its counts could be bounded too narrowly.

    Or where few people have answered it. A place that hides it in a group of an
    attribute is left out of the larger place's figures by this attribute.
    """
    first, again = precedent.first.of_item(name), precedent.again.of_item(name)
    hidden = decision.items[name]
    all_hidden = hidden[:, EVERYONE]
    counted = decision.counted & ~all_hidden[:, None]
    decision.counted_items[name] = counted
    published, answered = item.counts[name].copy(), item.answered.copy()
    for place, number in np.argwhere(decision.undivided).tolist():
        columns = list(groups.attributes[number])
        if not hidden[place, columns].any() and (
            again[place, columns].any()
            or tells_items(
                tree, groups, decision, name, item.counts[name], (place, number)
            )
            or dependent is not None
            and dependent.isolate_in_sum(
                tree, groups, decision, (place, number), name.partition(" ")[0]
            )
        ):
            hidden[place, columns] = True
            counted[place, number] = False
            # And in larger places where no other one has figures.
            above = int(tree.parents[place])
            while above != ROOT and not counted[tree.children(above), number].any():
                hidden[above, columns] = True
                counted[above, number] = False
                above = int(tree.parents[above])
    for level in tree.levels:
        for number, attribute in enumerate(map(np.array, groups.attributes)):
            cells = np.ix_(level, attribute)
            for counts in (published, answered):
                part = counts[:, attribute]
                tree.add_up(part, level, counted[:, number])
                counts[:, attribute] = part
            people = published[cells].sum(axis=2)
            rows = hidden[cells] | item.dependent[cells]
            rows |= few_answers(answered[cells], minimum)
            # Nobody is left, although somebody has answered.
            rows |= (people == 0) & (groups.people[cells] > 0)
            # Only of places that are left out of the next larger place's figures.
            rows |= again[cells] & rows.any(axis=1, keepdims=True)
            is_partly_hidden = rows.any(axis=1) & ~all_hidden[level]
            is_partly_hidden &= (~rows & (people > 0)).any(axis=1)
            for row in np.flatnonzero(is_partly_hidden).tolist():
                place = level[row]
                rows[row] = hide_parts(
                    *(people[row], published[place, attribute], rows[row]),
                    *(first[place, attribute], answered[place, attribute], minimum),
                )
            hidden[cells] = rows
            is_shown_partly = (rows & ~decision.groups[cells]).any(axis=1)
            counted[level[is_shown_partly], number] = False


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


def hide_parts(
    people: Integers,
    counts: Integers,
    hidden: Mask,
    first: Mask,
    answered: Integers,
    minimum: int,
) -> Mask:
    """Return which parts of a shown sum hide an item, `hidden` ones among them.

    `counts` are [part, category]. Together, the hidden parts have at least the minimum
    of people who answered. Parts of `first` are hidden before others. Of these, the
    part that leaves the fewest narrow counts is next; of several, the smallest.
    """
    hidden = hidden.copy()
    limits = np.zeros_like(counts), people[:, None] * np.ones_like(counts)
    wanted = widths(counts, limits, people > 0)
    while hidden.any() and (
        few_answers(answered[hidden].sum(keepdims=True), minimum).any()
        or narrow_counts(counts, limits, hidden, wanted)
    ):
        best: tuple[bool, int, bool, int, int] | None = None
        for part in np.flatnonzero((people > 0) & ~hidden).tolist():
            hidden[part] = True
            left = narrow_counts(counts, limits, hidden, wanted)
            hidden[part] = False
            rank = (not first[part], left, not answered[part], int(people[part]), part)
            best = min(best or rank, rank)
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
