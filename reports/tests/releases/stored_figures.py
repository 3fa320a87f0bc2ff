"""Read the figures of a group as they are stored, with nothing hidden in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reports.models import GroupResults
from reports.releases.counting import unpacked
from reports.releases.layout import Layout
from reports.releases.levels import LEVELS
from reports.results.distributions import ItemDistribution, items_of
from survey.models import Administration


@dataclass(frozen=True, slots=True)
class GroupDistribution:
    """The answers of one group at one place. Nothing is hidden in it."""

    as_of: datetime
    # Who have answered at least one item, and who of them have finished.
    people: int
    finished: int
    # By the item's name, in the order of the survey.
    items: Mapping[str, ItemDistribution]


def distributions(
    administration: Administration,
    level: str = LEVELS.STATE,
    place: int = 0,
    attribute: str = "",
    value: str = "",
) -> GroupDistribution | None:
    """Return a group's distributions, or None if nobody in it has answered.

    Of everyone at the place unless an attribute is given. 1 statement.
    """
    row = (
        GroupResults.objects.filter(
            administration=administration,
            level=level,
            place_id=place,
            attribute=attribute,
            value=value,
        )
        .values_list(
            "people",
            "finished",
            "counts",
            "administration__results_roll_up__layout",
            "administration__results_roll_up__as_of",
        )
        .first()
    )
    if row is None:
        return None
    people, finished, stored, layout, as_of = row
    items = items_of(Layout.from_json(layout), people, unpacked(stored))
    return GroupDistribution(as_of, people, finished, items)
