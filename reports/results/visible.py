"""Read distributions for pages and files, without what is hidden."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import F, Q

from reports.models import GroupResults
from reports.releases.counting import unpacked
from reports.releases.layout import Layout
from reports.releases.levels import Place
from reports.results.distributions import ItemDistribution, items_of
from survey.models import Administration


@dataclass(frozen=True, slots=True)
class VisibleGroup:
    """The distributions of a group that is shown."""

    as_of: datetime
    # Who have answered at least one item, and who of them have finished.
    people: int
    finished: int
    # Only the items that are shown.
    items: Mapping[str, ItemDistribution]
    # Items that are not shown.
    hidden_items: Collection[str] = ()
    # Item -> options of a multiple choice whose numbers are hidden.
    hidden_options: Mapping[str, set[str]] = field(default_factory=dict)
    # Whether schools that hide one of these groups are not in the figures. Of a single
    # school, the number of their people would be a hidden number.
    leaves_out_schools: bool = False
    # Whether it has the schools with a report only: see `aggregate_access`.
    is_sum_of_reports: bool = False


def visible_groups(
    administration: Administration,
    places: Collection[Place],
    attribute: str = "",
    value: str = "",
) -> dict[Place, VisibleGroup | None]:
    """Return a group's distributions in each place; None if it is hidden.

    Places without people in this group are left out, and all of them while it is
    not decided what is hidden. 1 statement.
    """
    chosen = Q()
    for level, key in places:
        chosen |= Q(level=level, place_id=key)
    rows = GroupResults.objects.filter(
        chosen,
        administration=administration,
        attribute=attribute,
        value=value,
        administration__results_roll_up__hidden_as_of=F(
            "administration__results_roll_up__as_of"
        ),
    ).values_list(
        *("level", "place_id", "is_hidden", "hidden_items"),
        "administration__results_roll_up__layout",
        "administration__results_roll_up__as_of",
        "administration__results_roll_up__coding_threshold",
        *("people", "finished", "counts"),
        *("published_people", "published_finished", "published_counts"),
    )
    visible: dict[Place, VisibleGroup | None] = {}
    layout = None
    for level, key, is_hidden, hidden, stored, as_of, threshold, *figures in rows:
        if is_hidden:
            visible[level, key] = None
            continue
        people, finished, counts, *published = figures
        leaves_out = published[0] is not None and published[0] != people
        if published[0] is not None:
            people, finished, counts = published
        layout = layout or Layout.from_json(stored)
        items = items_of(layout, people, unpacked(counts))
        hidden_items: list[str] = []
        options: dict[str, set[str]] = {}
        # Items come before their options.
        for name in sorted(hidden):
            item, _, option = name.partition(" ")
            if not option:
                items.pop(item)
                hidden_items.append(item)
            elif item in items:
                options.setdefault(item, set()).add(option)
                del items[item].values[option]
        hidden_items += code_ends(items, threshold)
        visible[level, key] = VisibleGroup(
            as_of, people, finished, items, hidden_items, options, leaves_out
        )
    return visible


def code_ends(items: dict[str, ItemDistribution], threshold: int) -> list[str]:
    """Code shares near 0 and 100 %; remove and return items that this cannot protect.

    Exact numbers of these answers are not in pages and files, nor anywhere behind here.
    """
    hidden = [name for name, item in items.items() if not item.code_ends(threshold)]
    for name in hidden:
        del items[name]
    return hidden
