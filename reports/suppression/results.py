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

import numpy as np

from reports.suppression.attributes import hide_attribute, hide_item
from reports.suppression.places import hide_item_of_places, hide_places
from reports.suppression.tables import Decision, Integers, ItemTables, ReleasedTables

MINIMUM_GROUP = 10


def decide(
    tables: ReleasedTables,
    items: Mapping[str, Integers],
    answered: Mapping[str, Integers] | None = None,
) -> Decision:
    """Return what is hidden in the results of one administration.

    `items` are counts [place, column, category]; skipped and not reached are
    categories, so they add up to the people of a group. Tables named "item option" are
    options of a multiple choice. `answered` are the people who answered an item:
    [place, column]; without them, everybody did.
    """
    groups, earlier, dependent = tables.groups, tables.earlier, tables.dependent
    hidden = np.zeros(groups.people.shape, dtype=bool)
    counted = np.ones((len(tables.tree), len(groups.attributes)), dtype=bool)
    decision = Decision(
        *(hidden, counted, np.zeros_like(counted)),
        np.ones(len(tables.tree), dtype=bool),
        summed=dict(earlier.summed),
    )
    hide_places(tables, decision)
    small = groups.too_small(tables.minimum) | earlier.forced.groups
    if dependent:
        small |= dependent.groups
    for number in range(len(groups.attributes)):
        hide_attribute(tables, decision, number, small)
    names_of: dict[str, list[str]] = {}
    for name in items:
        names_of.setdefault(name.partition(" ")[0], []).append(name)
    for item, names in names_of.items():
        of_item = ItemTables(
            {name: items[name] for name in names},
            (answered or {}).get(item, groups.people),
            dependent.items[item] if dependent else np.zeros_like(hidden),
        )
        hide_item_of_places(tables, decision, of_item)
        for name in names:
            hide_item(tables, decision, name, of_item)
    return decision
