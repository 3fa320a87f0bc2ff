"""Find the thresholds to which a measure is anchored.

The benchmark of a measure is a published one that a person imported, or its calibration
in the administration that a person chose. Until somebody does either, it is the first
one that is no pilot, among administrations of the same survey, owner and role. Items
match by name and answers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Exists, Min, OuterRef, Q

from reports.models import (
    Calibration,
    ChosenBenchmark,
    ImportedBenchmark,
    ReleasedItem,
)
from reports.scores.imported_measure import ImportedMeasure
from reports.scores.joining import Anchor
from reports.scores.problems import Kind, Problem
from reports.scores.scale import Scale
from reports.scores.spans import SpanScale
from survey.models import Administration

# With a smaller share of the people of the largest administration, it is a pilot.
SMALLEST_SHARE = 0.25
# Values from low to high, by item.
Options = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Benchmark:
    """What a measure is anchored to, and the scale of its scores.

    Without a scale, the administration is a benchmark itself; then `by_span` says
    whether grade spans get scales of their own.
    """

    calibration: Calibration | None = None
    anchors: Mapping[str, Anchor] = field(default_factory=dict)
    problems: Sequence[Problem] = ()
    scale: Scale | None = None
    spans: Mapping[str, SpanScale] = field(default_factory=dict)
    by_span: bool = False
    # Of which the scale is, if it is not that of the calibration.
    imported: ImportedBenchmark | None = None


def comparable(administration: Administration) -> Q:
    """Return the condition for administrations that can be compared with this one."""
    survey = administration.published.survey
    return Q(
        role=administration.role,
        district=administration.district_id,
        published__survey__name=survey.name,
        published__survey__district=survey.district_id,
    )


def imported_benchmark(administration: Administration) -> ImportedBenchmark | None:
    """Return the published benchmark that holds for an administration. 1 statement."""
    rounds = Administration.objects.filter(comparable(administration))
    return (
        ImportedBenchmark.objects.filter(administration__in=rounds, withdrawn_at=None)
        .order_by("-pk")
        .first()
    )


def benchmark_of(
    administration: Administration, measure: str, options: Options, *, people: int
) -> Benchmark:
    """Return the benchmark of a measure that so many people answered. 4 statements.

    A published one without thresholds only sets the scale: items stay anchored to the
    survey's own benchmark, on whose thresholds its mean and deviation must be.
    """
    imported = imported_benchmark(administration)
    if not imported or measure not in imported.measures:
        return _benchmark_of_rounds(administration, measure, options, people)
    published = ImportedMeasure.from_json(imported.measures[measure])
    benchmark = Benchmark(
        scale=published.scale, spans=published.spans, imported=imported
    )
    if not published.items:
        among_rounds = _benchmark_of_rounds(administration, measure, options, people)
        return replace(
            benchmark,
            calibration=among_rounds.calibration,
            anchors=among_rounds.anchors,
            problems=among_rounds.problems,
        )
    anchors = _anchors(published.items, options)
    if not anchors:
        return Benchmark(problems=[Problem(Kind.ALL_CHANGED)])
    return replace(benchmark, anchors=anchors, problems=_unanchored(options, anchors))


def _benchmark_of_rounds(
    administration: Administration, measure: str, options: Options, people: int
) -> Benchmark:
    """Return the benchmark among the rounds; none if this one is chosen."""
    choice = ChosenBenchmark.objects.filter(administration=administration).first()
    if choice:
        return Benchmark(by_span=choice.by_span)
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
        if anchors := _anchors(calibration.items, options):
            return Benchmark(
                calibration,
                anchors,
                _unanchored(options, anchors),
                scale_of(calibration),
                {
                    span: SpanScale.from_json(stored)
                    for span, stored in calibration.span_scales.items()
                },
            )
    return Benchmark(problems=[Problem(Kind.ALL_CHANGED)] if chosen else [])


def _anchors(items: Sequence[Mapping[str, Any]], options: Options) -> dict[str, Anchor]:
    return {
        item["name"]: anchor_of(item)
        for item in items
        if list(options.get(item["name"], ())) == item["options"]
    }


def _unanchored(options: Options, anchors: Mapping[str, Anchor]) -> list[Problem]:
    return [
        Problem(Kind.NOT_ANCHORED, item=name) for name in options if name not in anchors
    ]


def scale_of(calibration: Calibration) -> Scale | None:
    if calibration.scale_mean is None or calibration.scale_deviation is None:
        return None
    return Scale(
        calibration.scale_mean, calibration.scale_deviation, calibration.scale_unit
    )


def last_decision(administration: Administration) -> datetime | None:
    """Return when a person last decided about the benchmark. 2 statements."""
    rounds = Administration.objects.filter(comparable(administration))
    moments = list(
        ChosenBenchmark.objects.using(DEFAULT_DB_ALIAS)
        .filter(administration__in=rounds)
        .values_list("at", flat=True)
    )
    for at, withdrawn_at in (
        ImportedBenchmark.objects.using(DEFAULT_DB_ALIAS)
        .filter(administration__in=rounds)
        .values_list("at", "withdrawn_at")
    ):
        moments.append(withdrawn_at or at)
    return max(moments, default=None)


def rounds_to_calculate(
    administration: Administration, *, after: bool = False
) -> list[Administration]:
    """Return the rounds whose scores do not know the last decision about a benchmark.

    In the order in which they are to be calculated, each after its benchmark: the
    chosen one first, and then as they were calculated at first. With `after`, only
    those that follow this one. 3 statements.
    """
    rounds = Administration.objects.filter(
        comparable(administration), scoring__isnull=False
    )
    last = last_decision(administration)
    if last is None:
        return []
    choice = ChosenBenchmark.objects.filter(administration__in=rounds).first()
    ordered = list(
        rounds.select_related("scoring")
        .annotate(first=Min("calibrations__pk"))
        .order_by("first", "pk")
    )
    chosen = choice.administration_id if choice else None
    ordered.sort(key=lambda each: each.pk != chosen)
    keys = [each.pk for each in ordered]
    if after and administration.pk in keys:
        ordered = ordered[keys.index(administration.pk) + 1 :]
    return [each for each in ordered if each.scoring.calculated_at < last]


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
