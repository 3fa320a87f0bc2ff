"""The surveys and people of the export tests, and stored results as plain numbers."""

from __future__ import annotations

from collections import Counter

from accounts.tests.conftest import staff  # noqa: F401
from reports.models import GroupResults, ResultsRollUp
from reports.results.reading import distributions
from reports.tests.exports.conftest import enrol, fall, spring  # noqa: F401
from survey.tests.conftest import empty_caches  # noqa: F401


def stored(administration):
    """Return what is stored in the shape of `slowly_counted`."""
    found = {}
    rows = GroupResults.objects.filter(administration=administration)
    for row in rows:
        key = (row.level, row.place_id, row.attribute, row.value)
        group = distributions(administration, *key)
        items = {}
        for name, item in group.items.items():
            counter = Counter(
                skipped=item.skipped, answered=item.answered, unreached=item.not_reached
            )
            counter["n/a"] = item.not_applicable
            counter.update({f"={value}": n for value, n in item.values.items()})
            items[name] = +counter
        found[key] = {
            "people": group.people,
            "finished": group.finished,
            "items": items,
        }
    return found


def widths(administration):
    return ResultsRollUp.objects.get(administration=administration).layout["widths"]
