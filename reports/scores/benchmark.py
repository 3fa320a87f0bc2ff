"""Find the thresholds to which a measure is anchored.

The benchmark of a measure is its calibration in the administration that a person chose.
Until somebody chooses, it is the first one that is no pilot, among administrations of
the same survey, owner and role. Items match by name and answers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Exists, OuterRef, Q

from reports.models import Calibration, ChosenBenchmark, ReleasedItem
from reports.scores.calibration import Anchor
from reports.scores.problems import Kind, Problem
from reports.scores.scale import Scale
from survey.models import Administration

# With a smaller share of the people of the largest administration, it is a pilot.
SMALLEST_SHARE = 0.25
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


def comparable(administration: Administration) -> Q:
    """Return the condition for administrations that can be compared with this one."""
    survey = administration.published.survey
    return Q(
        role=administration.role,
        district=administration.district_id,
        published__survey__name=survey.name,
        published__survey__district=survey.district_id,
    )


def benchmark_of(
    administration: Administration, measure: str, options: Options, *, people: int
) -> Benchmark:
    """Return the benchmark of a measure that so many people answered.

    None if a person chose this administration. 3 statements.
    """
    if ChosenBenchmark.objects.filter(administration=administration).exists():
        return Benchmark()
    administrations = Administration.objects.filter(comparable(administration))
    calibrations = list(
        Calibration.objects.filter(
            measure=measure,
            anchored_to=None,
            scale_mean__isnull=False,
            administration__in=administrations,
        )
        .annotate(
            is_chosen=Exists(
                ChosenBenchmark.objects.filter(
                    administration=OuterRef("administration")
                )
            )
        )
        .order_by("pk")
    )
    chosen: list[Calibration] = [each for each in calibrations if each.is_chosen]
    if not chosen:
        # Rows are kept when scores are calculated again: so the order is that of the
        # first calculations, and a benchmark stays one.
        first = _first_calculated(administration, measure)
        earlier = [each for each in calibrations if first is None or each.pk < first]
        chosen = _without_pilots(earlier, people)
    for calibration in chosen:
        anchors = {
            item["name"]: anchor_of(item)
            for item in calibration.items
            if list(options.get(item["name"], ())) == item["options"]
        }
        if anchors:
            unanchored = [name for name in options if name not in anchors]
            problems = [Problem(Kind.NOT_ANCHORED, item=name) for name in unanchored]
            return Benchmark(calibration, anchors, problems)
    return Benchmark(problems=[Problem(Kind.ALL_CHANGED)] if chosen else [])


def anchored_elsewhere(administration: Administration) -> list[Administration]:
    """Return administrations to be compared with this benchmark that are not yet.

    None if nobody chose it. 1 statement.
    """
    anchored = Calibration.objects.filter(
        anchored_to__administration=administration
    ).values("administration")
    return list(
        Administration.objects.filter(
            comparable(administration),
            Exists(ChosenBenchmark.objects.filter(administration=administration)),
            scoring__isnull=False,
        )
        .exclude(pk=administration.pk)
        .exclude(pk__in=anchored)
        .order_by("pk")
    )


def _first_calculated(administration: Administration, measure: str) -> int | None:
    return (
        Calibration.objects.filter(administration=administration, measure=measure)
        .values_list("pk", flat=True)
        .first()
    )


def _without_pilots(earlier: Sequence[Calibration], people: int) -> list[Calibration]:
    """Leave out calibrations of few people: a pilot is compared with by choice only."""
    largest = max([people, *(calibration.people for calibration in earlier)])
    return [
        calibration
        for calibration in earlier
        if calibration.people >= SMALLEST_SHARE * largest
    ]


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
