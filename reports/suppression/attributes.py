"""Hide groups of one attribute, and items in them, from the schools upwards."""

from __future__ import annotations

import numpy as np

from reports.suppression.candidates import few_answers, hide_parts, hide_people
from reports.suppression.exchanges import are_interchangeable
from reports.suppression.tables import (
    EVERYONE,
    ROOT,
    Decision,
    Integers,
    ItemTables,
    Mask,
    ReleasedTables,
)

# Of the people of a place, before the places below it are not shown by an attribute.
MOST_LEFT_OUT = 0.2


def hide_attribute(
    tables: ReleasedTables, decision: Decision, number: int, small: Mask
) -> None:
    """Hide groups of one attribute from the schools upwards, the `small` ones first."""
    tree, groups = tables.tree, tables.groups
    minimum, earlier = tables.minimum, tables.earlier
    hidden, counted = decision.groups, decision.counted[:, number]
    attribute = np.array(groups.attributes[number])
    people = groups.people[:, attribute].copy()
    forced = earlier.forced.groups[:, attribute]
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
            was_divided = earlier.divided[place, number]
            if earlier.undivided[place, number] or are_many and not was_divided:
                below = tree.below(place)
                hidden[np.ix_(below, attribute)] = True
                counted[children] = ~hidden[children, EVERYONE]
                decision.undivided[place, number] = True
            people[place] = people[children[counted[children]]].sum(axis=0)
            few = (people[place] > 0) & (people[place] < minimum) | forced[place]
            # The schools' own totals tell too much about a few hidden groups.
            hidden[place, attribute] |= few.any() or (
                decision.undivided[place, number]
                and (
                    tells_groups(tables, decision, (place, number))
                    or (
                        tables.dependent is not None
                        and tables.dependent.isolate_in_sum(
                            tables, decision, (place, number)
                        )
                    )
                )
            )
        else:
            hidden[place, attribute] = hide_groups(
                tables, place, attribute, small[place]
            )
        counted[place] = not hidden[place, attribute].any()
    for place in np.flatnonzero(decision.undivided[:, number]).tolist():
        if not hidden[place, attribute].any():
            schools = frozenset(tree.leaves_of(place, decision.counted[:, number]))
            decision.summed[place, number] = schools


def hide_groups(
    tables: ReleasedTables, place: int, attribute: Integers, small: Mask
) -> Mask:
    """Return which groups of a place are hidden: `small` ones [column] and others."""
    groups, minimum, earlier = tables.groups, tables.minimum, tables.earlier
    if not small[attribute].any():
        return np.zeros(len(attribute), dtype=bool)
    everyone = groups.people[place, EVERYONE]
    most = np.minimum(groups.most_people[place, attribute], everyone)
    least = np.maximum(0, everyone - (most.sum() - most))
    return hide_people(
        *(groups.people[place, attribute], (least, most), minimum, small[attribute]),
        earlier.preferred.groups[place, attribute],
    )


def hide_item(
    tables: ReleasedTables, decision: Decision, name: str, item: ItemTables
) -> None:
    """Hide the item in groups where its counts could be bounded too narrowly.

    Or where few people have answered it. A place that hides it in a group of an
    attribute is left out of the larger place's figures by this attribute.
    """
    tree, groups = tables.tree, tables.groups
    minimum, earlier = tables.minimum, tables.earlier
    preferred = earlier.preferred.of_item(name)
    forced = earlier.forced.of_item(name)
    hidden = decision.items[name]
    all_hidden = hidden[:, EVERYONE]
    counted = decision.counted & ~all_hidden[:, None]
    decision.counted_items[name] = counted
    published, answered = item.counts[name].copy(), item.answered.copy()
    _hide_in_sums(tables, decision, name, item)
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
            rows |= forced[cells] & rows.any(axis=1, keepdims=True)
            is_partly_hidden = rows.any(axis=1) & ~all_hidden[level]
            is_partly_hidden &= (~rows & (people > 0)).any(axis=1)
            for row in np.flatnonzero(is_partly_hidden).tolist():
                place = level[row]
                rows[row] = hide_parts(
                    *(people[row], published[place, attribute], rows[row]),
                    *(preferred[place, attribute], answered[place, attribute], minimum),
                )
            hidden[cells] = rows
            is_shown_partly = (rows & ~decision.groups[cells]).any(axis=1)
            counted[level[is_shown_partly], number] = False


def _hide_in_sums(
    tables: ReleasedTables, decision: Decision, name: str, item: ItemTables
) -> None:
    """Hide the item in undivided places whose sums would tell it of a school."""
    tree, groups = tables.tree, tables.groups
    forced = tables.earlier.forced.of_item(name)
    hidden, counted = decision.items[name], decision.counted_items[name]
    for place, number in np.argwhere(decision.undivided).tolist():
        columns = list(groups.attributes[number])
        if not hidden[place, columns].any() and (
            forced[place, columns].any()
            or tells_items(tables, decision, name, item, (place, number))
            or tables.dependent is not None
            and tables.dependent.isolate_in_sum(
                tables, decision, (place, number), name.partition(" ")[0]
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


def tells_groups(
    tables: ReleasedTables, decision: Decision, cell: tuple[int, int]
) -> bool:
    """Return whether a sum of schools that show no groups tells those of a school.

    Because the schools' totals and the sum leave too few candidates, or by subtraction
    from a sum of other schools that was shown before.
    """
    place, number = cell
    schools = tables.tree.leaves_of(place, decision.counted[:, number])
    if tables.earlier.summed.get(cell, set(schools)) != set(schools):
        return True
    counts = tables.groups.present_and_absent
    return tells_parts(tables, decision, counts, cell, of_people=True)


def tells_items(
    tables: ReleasedTables,
    decision: Decision,
    name: str,
    item: ItemTables,
    cell: tuple[int, int],
) -> bool:
    """Return whether a sum of schools that show no groups tells their items.

    Because it would not be of the same schools as the number of people, or because the
    schools' totals and the sum leave too few candidates.
    """
    place, number = cell
    schools = tables.tree.leaves_of(place, decision.counted[:, number])
    return bool(decision.items[name][schools, EVERYONE].any()) or tells_parts(
        tables, decision, item.counts[name], cell
    )


def tells_parts(
    tables: ReleasedTables,
    decision: Decision,
    counts: Integers,
    cell: tuple[int, int],
    *,
    of_people: bool = False,
) -> bool:
    """Return whether a sum leaves too few candidates for counts in its schools.

    Or in the districts below the state. Known of the schools are their totals.
    """
    tree, groups = tables.tree, tables.groups
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
