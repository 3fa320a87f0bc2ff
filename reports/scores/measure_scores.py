"""Calculate a measure of an administration, on the scale of its benchmark."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from django.conf import settings

from reports.answers.item_codes import VALUE, ItemCodes
from reports.answers.versions import SurveyVersion
from reports.models import Calibration, ImportedBenchmark
from reports.rasch import MISSING
from reports.rasch.responses import Floats, Integers
from reports.releases.changes import Recount
from reports.scores.benchmark import Benchmark, benchmark_of
from reports.scores.calibration import MeasureResult, calibrate_measure
from reports.scores.group_tables import MeasuredGroups
from reports.scores.groups import Grouping, Patterns
from reports.scores.joining import table_of
from reports.scores.problems import Kind, Problem
from reports.scores.scale import Scale, Sums, benchmark_scale, has_few_schools
from reports.scores.shrinkage import SchoolDifferences, estimate_differences
from reports.scores.spans import SpanScale, benchmark_spans, span_differences
from reports.suppression.places import counted_in_scores
from reports.suppression.tables import Mask
from survey.instrument.definitions.schema import MeasureDefinition
from survey.models import Administration


@dataclass(frozen=True)
class CalculatedMeasure:
    """One measure: what to store of it, and its sums by grouping."""

    definition: MeasureDefinition
    anchored_to: Calibration | None
    imported: ImportedBenchmark | None
    result: MeasureResult
    scale: Scale | None
    differences: SchoolDifferences
    spans: Mapping[str, SpanScale]
    people: int
    problems: list[Problem]
    # As `Grouping.sums`.
    sums: list[Floats]
    groups: MeasuredGroups
    # Schools with a report that shows it: those in the means of larger places.
    counted: Mask


@dataclass
class MeasureScale:
    """Where a measure's scores are, and what is wrong with that."""

    anchored_to: Calibration | None
    imported: ImportedBenchmark | None
    scale: Scale | None
    differences: SchoolDifferences
    spans: Mapping[str, SpanScale]
    problems: list[Problem] = field(default_factory=list)


def calculate_measure(
    administration: Administration,
    version: SurveyVersion,
    definition: MeasureDefinition,
    answers: Recount,
    groupings: Sequence[Grouping],
    patterns: Patterns,
    spans: Mapping[int, str],
    hidden: Mask,
    released: Collection[str],
) -> tuple[CalculatedMeasure, Floats]:
    """Return a measure, and that of each person.

    `spans` are those of schools, and `hidden` are schools that have no report, or do
    not show the measure in it.
    """
    options = measure_options(version, definition)
    table, row = table_of(
        [_categories(answers.answers[item], options[item]) for item in options]
    )
    answered = int(table.people[table.answered.any(axis=1)].sum())
    benchmark = benchmark_of(
        administration, definition["name"], options, people=answered
    )
    result = calibrate_measure(
        table,
        list(options),
        options,
        anchors=benchmark.anchors,
        released=released,
        fewest_answers=settings.FEWEST_ANSWERS_OF_A_MEASURE,
    )
    measured = result.measures[row]
    sums = [grouping.sums(measured) for grouping in groupings]
    counted = counted_in_scores(sums[0][0, :, 0], hidden, administration.minimum_group)
    schools = [spans.get(key, "") for key in groupings[0].schools.tolist()]
    scale = _scale(benchmark, result, Sums(*sums[0][:, :, 0]), counted, schools)
    problems = [*benchmark.problems, *result.problems]
    problems += [Problem(Kind.RELEASED, item=item) for item in sorted(released)]
    measure = CalculatedMeasure(
        definition,
        scale.anchored_to,
        scale.imported,
        result,
        *(scale.scale, scale.differences, scale.spans),
        int(table.people[np.isfinite(result.measures)].sum()),
        [*problems, *scale.problems],
        *(sums, MeasuredGroups.of(measured, groupings, patterns), counted),
    )
    return measure, measured


def measure_options(
    version: SurveyVersion, definition: MeasureDefinition
) -> dict[str, list[str]]:
    """Return the values of each item, from low to high in the measure's direction."""
    options = {}
    for item in definition["items"]:
        values = [
            option["value"]
            for option in version.options(version.items[item["name"]])
            if option["value"] not in definition["missing"]
        ]
        options[item["name"]] = values[::-1] if item["reversed"] else values
    return options


def _scale(
    benchmark: Benchmark,
    result: MeasureResult,
    schools: Sums,
    counted: Mask,
    spans: list[str],
) -> MeasureScale:
    """Return the benchmark's scale, or that of these schools if there is none."""
    # Without any of them nothing is shown.
    shown = counted if counted.any() else np.ones_like(counted)
    of_shown = Sums(schools.people[shown], schools.sums[shown], schools.squares[shown])
    differences = estimate_differences(of_shown)
    at = MeasureScale(
        benchmark.calibration,
        benchmark.imported,
        benchmark.scale,
        differences,
        span_differences(benchmark.spans, schools, spans, shown),
    )
    if benchmark.anchors and not any(item.is_anchored for item in result.items):
        # Nothing puts these thresholds on the benchmark's scale.
        at.anchored_to = at.imported = at.scale = None
        at.spans = {}
        at.problems.append(Problem(Kind.ALL_CHANGED))
    is_benchmark = not at.anchored_to and not at.imported
    if is_benchmark:
        at.scale = benchmark_scale(of_shown, differences.between)
        if benchmark.by_span:
            at.spans = benchmark_spans(schools, spans, shown)
        if not at.scale and result.items:
            at.problems.append(Problem(Kind.NO_SPREAD))
        if at.scale and has_few_schools(of_shown):
            at.problems.append(Problem(Kind.FEW_SCHOOLS))
    if at.scale and not differences.between:
        at.problems.append(Problem(Kind.NO_DIFFERENCES))
    return at


def _categories(item: ItemCodes, options: Sequence[str]) -> Integers:
    """Return the category of each person, or MISSING."""
    position = {value: place for place, value in enumerate(options)}
    lookup = np.full(VALUE + len(item.values), MISSING, dtype=np.int8)
    for place, value in enumerate(item.values):
        lookup[VALUE + place] = position.get(value, MISSING)
    return np.asarray(lookup[item.codes])
