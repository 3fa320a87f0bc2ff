"""The surveys and people of the export tests, and stored results as plain numbers."""

from __future__ import annotations

from collections import Counter

from accounts.tests.conftest import staff  # noqa: F401
from reports.models import GroupResults, ResultsRollUp
from reports.releases.counting import unpacked
from reports.releases.layout import Layout
from reports.releases.rollup import roll_up_results
from reports.results.distributions import items_of
from reports.tests.exports.conftest import (  # noqa: F401
    enrol,
    fall,
    first_survey,
    second_survey,
    spring,
)
from survey.models import Administration
from survey.tests.conftest import empty_caches  # noqa: F401


def stored(administration):
    """Return what is stored in the shape of `slowly_counted`."""
    results = {}
    rows = GroupResults.objects.filter(administration=administration)
    for row in rows.select_related("administration__results_roll_up"):
        key = (row.level, row.place_id, row.attribute, row.value)
        layout = Layout.from_json(row.administration.results_roll_up.layout)
        items = {}
        for name, item in items_of(layout, row.people, unpacked(row.counts)).items():
            counter = Counter(
                skipped=item.skipped, answered=item.answered, unreached=item.not_reached
            )
            counter["n/a"] = item.not_applicable
            counter.update({f"={value}": n for value, n in item.values.items()})
            items[name] = +counter
        results[key] = {
            "people": row.people,
            "finished": row.finished,
            "items": items,
        }
    return results


def widths(administration):
    return ResultsRollUp.objects.get(administration=administration).layout["widths"]


def release(administration):
    roll_up_results(
        Administration.objects.select_related("published__survey").get(
            pk=administration.pk
        ),
        release=True,
    )
