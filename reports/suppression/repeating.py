"""Find out which attribute another one repeats, to tell administrators about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.suppression.dependent_groups import SAMPLE, Memberships, Search
from reports.suppression.tables import ReleasedTables


def repeated_attributes(
    tables: ReleasedTables,
    memberships: Mapping[int, Memberships],
    repeating: Sequence[int],
) -> dict[int, int]:
    """Return for each repeating attribute the one that it repeats most.

    Beside that one, schools show the fewest groups, compared with both alone. An
    attribute that only repeats several others together is left out.
    """
    if not repeating:
        return {}
    search = Search(tables, memberships)
    sample = search.places[:: max(1, len(search.places) // SAMPLE)]
    attributes = range(len(tables.groups.attributes))

    def shown_with(*pair: int) -> int:
        without = [number for number in attributes if number not in pair]
        # Everyone is a group, too.
        return search.shown_groups(sample, without) - len(sample)

    repeated = {}
    for number in repeating:
        lost = {
            each: shown_with(number) + shown_with(each) - shown_with(number, each)
            for each in attributes
            if each not in repeating
        }
        most = max(lost, key=lambda each: lost[each], default=number)
        if lost.get(most, 0) > 0:
            repeated[number] = most
    return repeated
