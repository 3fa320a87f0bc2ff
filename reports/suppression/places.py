"""Hide small places, and items in places in which few people have answered them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reports.suppression.candidates import few_answers, has_narrow_counts, widths
from reports.suppression.tables import (
    CANDIDATES,
    EVERYONE,
    ROOT,
    Decision,
    EarlierSuppression,
    ItemTables,
    Mask,
    ReleasedTables,
)


def hide_places(tables: ReleasedTables, decision: Decision) -> None:
    """Hide small places, and all places below them.

    Hidden places are a part of the larger place only together. Otherwise it has the
    people of the others alone, so no further place has to be hidden.
    """
    tree, groups = tables.tree, tables.groups
    minimum, earlier = tables.minimum, tables.earlier
    hidden, counted = decision.groups[:, EVERYONE], decision.counted_all
    hidden |= small_places(tables)
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
                    earlier, earlier.preferred.groups[children, EVERYONE], together
                )
            )
        published[place] = published[children[counted[children]]].sum()
        if published[place] < minimum:
            hidden[place] = people[place] > 0
            counted[children] = True
            published[place] = people[place]


def small_places(tables: ReleasedTables) -> Mask:
    """Return the places with few people, and those below them."""
    tree, groups = tables.tree, tables.groups
    minimum, earlier = tables.minimum, tables.earlier
    people = groups.people[:, EVERYONE]
    small = (people > 0) & (people < minimum) | earlier.forced.groups[:, EVERYONE]
    for place in range(1, len(tree)):
        small[place] |= small[tree.parents[place]]
    return small


def hide_item_of_places(
    tables: ReleasedTables, decision: Decision, item: ItemTables
) -> None:
    """Hide the item in places in which few people have answered it.

    As with places themselves: those that hide it are a part of the larger place's
    figures together, or not at all.
    """
    tree, groups = tables.tree, tables.groups
    minimum, earlier = tables.minimum, tables.earlier
    hidden = decision.groups[:, EVERYONE].copy()
    preferred = np.zeros_like(hidden)
    for name in item.counts:
        hidden |= earlier.forced.of_item(name)[:, EVERYONE]
        preferred |= earlier.preferred.of_item(name)[:, EVERYONE]
    answered = item.answered[:, EVERYONE].copy()
    hidden |= few_answers(answered, minimum)
    counted = decision.counted_all.copy()
    people = groups.people[:, EVERYONE].copy()
    published = [counts[:, EVERYONE].copy() for counts in item.counts.values()]
    for place in range(len(tree) - 1, ROOT, -1):
        children = tree.children(place)
        if decision.groups[place, EVERYONE] or not len(children):
            continue
        parts = children[counted[children]]
        together = hidden[parts]
        if together.any() and not (
            together.sum() > 1
            and answered[parts[together]].sum() >= minimum
            and are_same_as_before(earlier, preferred[parts], together)
            and not any(
                has_narrow_counts(people[parts], counts[parts], together)
                for counts in published
            )
        ):
            counted[parts[together]] = False
            parts = parts[~together]
        for numbers in (people, answered, *published):
            numbers[place] = numbers[parts].sum(axis=0)
        hidden[place] |= (
            few_answers(answered[[place]], minimum).any() or not people[place]
        )
    for name in item.counts:
        decision.items[name] = decision.groups.copy()
        decision.items[name][hidden] = True
        decision.counted_all_items[name] = counted


def are_same_as_before(earlier: EarlierSuppression, before: Mask, hidden: Mask) -> bool:
    """Return whether the hidden parts of a sum are those that were hidden before.

    Otherwise the sums of two waves, subtracted, would be those of other parts.
    """
    return not earlier.is_known or bool((before == hidden).all())


def counted_in_scores(people: NDArray[np.float64], hidden: Mask, minimum: int) -> Mask:
    """Return the schools that are in the means of larger places.

    `people` have the measure, and `hidden` schools have no report, or hide the measure
    or one of its items.
    """
    return ~hidden & (people >= minimum)
