"""Find the thresholds to which a measure is anchored.

The benchmark of a measure is the first calibration of a measure with its name, in an
administration of the same survey, owner and role, that has one of its items with the
same answers. Items match by name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from reports.models import Calibration, ReleasedItem
from reports.scores.calibration import Anchor
from reports.scores.problems import Kind, Problem
from reports.scores.scale import Scale
from survey.models import Administration

# Values from low to high, by item.
Options = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Benchmark:
    """What a measure is anchored to. Without a calibration it is a benchmark itself."""

    calibration: Calibration | None = None
    anchors: Mapping[str, Anchor] = field(default_factory=dict)
    problems: Sequence[Problem] = ()

    @property
    def scale(self) -> Scale | None:
        calibration = self.calibration
        if (
            not calibration
            or calibration.scale_mean is None
            or calibration.scale_deviation is None
        ):
            return None
        return Scale(
            calibration.scale_mean, calibration.scale_deviation, calibration.scale_unit
        )


def benchmark_of(
    administration: Administration, measure: str, options: Options
) -> Benchmark:
    """Return the benchmark of a measure. 2 statements."""
    survey = administration.published.survey
    earlier = Calibration.objects.filter(
        measure=measure,
        anchored_to=None,
        scale_mean__isnull=False,
        administration__role=administration.role,
        administration__district=administration.district_id,
        administration__published__survey__name=survey.name,
        administration__published__survey__district=survey.district_id,
    ).order_by("pk")
    calibrations = Calibration.objects.filter(
        administration=administration, measure=measure
    )
    # Rows are kept when scores are calculated again: so the order is that of the
    # first calculations, and a benchmark stays one.
    if first := calibrations.values_list("pk", flat=True).first():
        earlier = earlier.filter(pk__lt=first)
    candidates = list(earlier)
    for calibration in candidates:
        anchors = {
            item["name"]: anchor_of(item)
            for item in calibration.items
            if list(options.get(item["name"], ())) == item["options"]
        }
        if anchors:
            unanchored = [name for name in options if name not in anchors]
            problems = [Problem(Kind.NOT_ANCHORED, item=name) for name in unanchored]
            return Benchmark(calibration, anchors, problems)
    return Benchmark(problems=[Problem(Kind.ALL_CHANGED)] if candidates else [])


def anchor_of(item: Mapping[str, Any]) -> Anchor:
    """Return a stored `ItemResult` as an anchor.

    Older ones have the options that somebody chose; the others belong to the category
    below them.
    """
    categories = item.get("option_categories")
    if categories is None:
        places = range(len(item["options"]))
        used = item["categories"]
        categories = [max(bisect_right(used, place) - 1, 0) for place in places]
    return Anchor(
        tuple(categories), tuple(item["thresholds"]), item.get("covariances", {})
    )


def released_items(administration: Administration) -> dict[str, set[str]]:
    """Return the released items of each measure. 1 statement, on the primary."""
    released: dict[str, set[str]] = {}
    rows = ReleasedItem.objects.using(DEFAULT_DB_ALIAS)
    for measure, item in rows.filter(administration=administration).values_list(
        "measure", "item"
    ):
        released.setdefault(measure, set()).add(item)
    return released
