"""Calculate and store the scores of an administration, once.

One snapshot of the replica is read into an array of codes for each item; people with
the same answers to a measure's items share one row of its table, and people with the
same score on the same items one measure.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import islice

import numpy as np
import scipy
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from reports.answers.item_codes import VALUE, ItemCodes
from reports.answers.versions import SurveyVersion, versions_of
from reports.models import (
    Calibration,
    GroupResults,
    ResultsRollUp,
    ScoreRow,
    Scoring,
)
from reports.models.scores import FORMAT
from reports.rasch import MISSING, VERSION
from reports.rasch.responses import Floats, Integers
from reports.rates.rollup_query import refresh_replica_timestamp
from reports.releases.changes import Recount, read_changes
from reports.releases.layout import counted_items
from reports.releases.rollup import attributes_of, keeps_earlier_answers
from reports.releases.summed_schools import summed_schools
from reports.scores.benchmark import benchmark_of, released_items
from reports.scores.calibration import MeasureResult, calibrate_measure, table_of
from reports.scores.group_tables import MeasuredGroups, score_tables
from reports.scores.groups import (
    Grouping,
    GroupSums,
    Patterns,
    ScoredMeasure,
    group_rows,
    score_rows,
)
from reports.scores.problems import Kind, Problem
from reports.scores.scale import Scale, Sums, benchmark_scale, has_few_schools
from reports.scores.shrinkage import SchoolDifferences, Shrinkage, estimate_differences
from reports.scores.visible import decided, measures_in_survey
from reports.suppression.places import counted_in_scores
from reports.suppression.scores import decide_scores
from reports.suppression.tables import Mask
from survey.fieldwork.administrations.changes import lock_administration
from survey.instrument.definitions.schema import MeasureDefinition, Measures
from survey.models import Administration
from survey.work.jobs import JobRefused, Progress

log = logging.getLogger(__name__)

BATCH = 1000
SOFTWARE = f"rasch {VERSION}, numpy {np.__version__}, scipy {scipy.__version__}"


class ReleasesChanged(Exception):
    """Somebody released or anchored an item while the scores were calculated."""


@dataclass(frozen=True, slots=True)
class ScoringOutcome:
    """What was calculated; nothing if the scores were there. `reading` is a part."""

    people: int = 0
    measures: int = 0
    rows: int = 0
    reading: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class CalculatedMeasure:
    """One measure: what to store of it, and its sums by grouping."""

    definition: MeasureDefinition
    anchored_to: Calibration | None
    result: MeasureResult
    scale: Scale | None
    differences: SchoolDifferences
    people: int
    problems: list[Problem]
    # As `Grouping.sums`.
    sums: list[Floats]
    groups: MeasuredGroups
    # Schools with a report that shows it: those in the means of larger places.
    counted: Mask


@dataclass
class Calculation:
    """All that is stored of an administration."""

    as_of: datetime
    people: int
    measures: list[CalculatedMeasure] = field(default_factory=list)
    # By the positions of two measures of an essential, as `Grouping.products`: of
    # everyone.
    products: dict[tuple[int, int], Floats] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def score_administration(
    administration: Administration,
    progress: Progress | None = None,
    *,
    recalculate: bool = False,
) -> ScoringOutcome:
    """Calculate the scores of a closed administration and store them.

    Scores that are there stay as they are, unless `recalculate` or in an older format.
    Raises JobRefused while people can answer, and OperationalError if the replica is
    away.
    """
    start = time.monotonic()
    scored = Scoring.objects.current().filter(pk=administration.pk)
    if not recalculate and scored.exists():
        return ScoringOutcome()
    if administration.state != Administration.State.CLOSED:
        raise JobRefused(_("Scores are calculated once nobody can answer any more."))
    if scored.exists() and keeps_earlier_answers(administration):
        raise JobRefused(
            _(
                "Scores stay as they are: in some schools a few people have changed"
                " their answers since the release."
            )
        )
    refresh_replica_timestamp()
    [version] = versions_of([administration]).values()
    content = measures_in_survey(administration)
    if progress:
        progress.begin_step(_("Reading the responses."))
    answers = read_answers(administration, version, content)
    reading = time.monotonic() - start
    groupings = [
        Grouping.of(attribute, answers.people)
        for attribute in attributes_of(administration)
    ]
    patterns = Patterns.of(groupings)
    while True:
        released = released_items(administration)
        calculation = _calculate_all(
            *(administration, version, content, answers, groupings, patterns),
            released,
            progress,
        )
        if progress:
            progress.begin_step(_("Storing the scores."))
        rows = _rows(administration, content, calculation, groupings, patterns, answers)
        try:
            stored = _store(
                administration,
                calculation,
                rows,
                released,
                progress,
                recalculate=recalculate,
            )
            break
        except ReleasesChanged:
            log.info("An item of %s was released: calculating again", administration)
    seconds = time.monotonic() - start
    log.info("Scored %s in %.2f s", administration, seconds)
    return ScoringOutcome(
        calculation.people, len(calculation.measures), stored, reading, seconds
    )


def read_answers(
    administration: Administration, version: SurveyVersion, content: Measures
) -> Recount:
    """Read the answers to the items of measures, of the people of the release."""
    wanted = {
        item["name"] for measure in content["measures"] for item in measure["items"]
    }
    items = [item for item in counted_items(version) if item.name in wanted]
    return read_changes(administration, version, items, None, of_release=True)


def _calculate_all(
    administration: Administration,
    version: SurveyVersion,
    content: Measures,
    answers: Recount,
    groupings: Sequence[Grouping],
    patterns: Patterns,
    released: Mapping[str, Collection[str]],
    progress: Progress | None,
) -> Calculation:
    if progress:
        progress.begin_step(
            _("Calculating the measures."), total=len(content["measures"])
        )
    calculation = Calculation(answers.as_of, len(answers.people))
    if not content["measures"]:
        calculation.problems.append(Problem(Kind.NO_MEASURES))
    elif not calculation.people:
        calculation.problems.append(Problem(Kind.NO_PEOPLE))
    if not calculation.people:
        return calculation
    hidden_items = _hidden_items(administration)
    with_report = summed_schools(administration).keys()
    last = {part["essential"]: n for n, part in enumerate(content["measures"])}
    # People's measures by essential, as long as another measure of it comes.
    by_essential: dict[str, dict[int, Floats]] = {}
    for position, definition in enumerate(content["measures"]):
        names = {item["name"] for item in definition["items"]}
        hidden = np.array(
            [
                key not in with_report
                or hidden_items is not None
                and (key not in hidden_items or not names.isdisjoint(hidden_items[key]))
                for key in groupings[0].schools.tolist()
            ]
        )
        measure, measured = _calculate(
            *(administration, version, definition, answers, groupings),
            *(patterns, hidden),
            released.get(definition["name"], ()),
        )
        calculation.measures.append(measure)
        if essential := definition["essential"]:
            earlier = by_essential.setdefault(essential, {})
            for partner, before in earlier.items():
                calculation.products[partner, position] = groupings[0].products(
                    before, measured
                )
            earlier[position] = measured.astype(np.float32)
            if last[essential] == position:
                del by_essential[essential]
        if progress:
            progress.advance()
    return calculation


def _hidden_items(administration: Administration) -> dict[int, list[str]] | None:
    """Return the hidden items of each school that is shown. 2 statements.

    None if that is not decided yet: the scores are calculated again after it.
    """
    if not ResultsRollUp.objects.filter(
        administration=administration, hidden_as_of=F("as_of")
    ).exists():
        return None
    rows = GroupResults.objects.filter(
        administration=administration, level=GroupResults.Level.SCHOOL, attribute=""
    )
    return dict(decided(rows).values_list("place_id", "hidden_items"))


def _calculate(
    administration: Administration,
    version: SurveyVersion,
    definition: MeasureDefinition,
    answers: Recount,
    groupings: Sequence[Grouping],
    patterns: Patterns,
    hidden: Mask,
    released: Collection[str],
) -> tuple[CalculatedMeasure, Floats]:
    """Return a measure, and that of each person.

    `hidden` are schools that have no report, or do not show the measure in it.
    """
    name = definition["name"]
    options = {}
    for item in definition["items"]:
        values = [
            option["value"]
            for option in version.options(version.items[item["name"]])
            if option["value"] not in definition["missing"]
        ]
        options[item["name"]] = values[::-1] if item["reversed"] else values
    table, row = table_of(
        [_categories(answers.answers[item], options[item]) for item in options]
    )
    answered = int(table.people[table.answered.any(axis=1)].sum())
    benchmark = benchmark_of(administration, name, options, people=answered)
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
    problems = [*benchmark.problems, *result.problems]
    problems += [Problem(Kind.RELEASED, item=item) for item in sorted(released)]
    anchored_to, scale = benchmark.calibration, benchmark.scale
    if anchored_to and not any(item.is_anchored for item in result.items):
        # Nothing puts these thresholds on the benchmark's scale.
        anchored_to = None
        problems.append(Problem(Kind.ALL_CHANGED))
    # Without any of them nothing is shown.
    shown = counted if counted.any() else np.ones_like(counted)
    schools = Sums(*sums[0][:, shown, 0])
    differences = estimate_differences(schools)
    if not anchored_to:
        scale = benchmark_scale(schools, differences.between)
        if not scale and result.items:
            problems.append(Problem(Kind.NO_SPREAD))
    if scale and not anchored_to and has_few_schools(schools):
        problems.append(Problem(Kind.FEW_SCHOOLS))
    if scale and not differences.between:
        problems.append(Problem(Kind.NO_DIFFERENCES))
    people = int(table.people[np.isfinite(result.measures)].sum())
    measure = CalculatedMeasure(
        *(definition, anchored_to, result, scale, differences, people, problems),
        *(sums, MeasuredGroups.of(measured, groupings, patterns), counted),
    )
    return measure, measured


def _categories(item: ItemCodes, options: Sequence[str]) -> Integers:
    """Return the category of each person, or MISSING."""
    position = {value: place for place, value in enumerate(options)}
    lookup = np.full(VALUE + len(item.values), MISSING, dtype=np.int8)
    for place, value in enumerate(item.values):
        lookup[VALUE + place] = position.get(value, MISSING)
    return np.asarray(lookup[item.codes])


def _rows(
    administration: Administration,
    content: Measures,
    calculation: Calculation,
    groupings: Sequence[Grouping],
    patterns: Patterns,
    answers: Recount,
) -> Iterator[ScoreRow]:
    if not calculation.measures:
        return
    measures = [
        ScoredMeasure(
            measure.definition,
            measure.scale,
            Shrinkage.of(measure.scale, measure.differences) if measure.scale else None,
        )
        for measure in calculation.measures
    ]
    counted = np.array([measure.counted for measure in calculation.measures])
    districts = answers.people.districts
    sums = [
        GroupSums(
            grouping, np.array([each.sums[number] for each in calculation.measures])
        )
        for number, grouping in enumerate(groupings)
    ]
    everyone = replace(sums[0], products=calculation.products)
    yield from score_rows(
        everyone.without_few_pairs(measures, administration.minimum_group),
        *(counted, districts, measures, content, administration.pk),
    )
    tables = score_tables(
        *(administration, groupings, patterns, measures),
        [each.groups for each in calculation.measures],
        *(counted, districts),
    )
    shown = decide_scores(tables)
    for number, columns in enumerate(patterns.attributes):
        yield from group_rows(
            *(sums[number + 1], shown, number, columns),
            *(districts, measures, administration.pk),
        )


def _store(
    administration: Administration,
    calculation: Calculation,
    rows: Iterator[ScoreRow],
    released: Mapping[str, Collection[str]],
    progress: Progress | None,
    *,
    recalculate: bool,
) -> int:
    """Replace everything in one transaction; return the number of rows.

    Raises ReleasesChanged if other items are released now than in the calculation.
    """
    now = timezone.now()
    with transaction.atomic():
        scorings = Scoring.objects.select_for_update().filter(pk=administration.pk)
        if scorings.current().exists() and not recalculate:
            return 0
        Scoring.objects.update_or_create(
            administration=administration,
            defaults={
                "as_of": calculation.as_of,
                "calculated_at": now,
                "people": calculation.people,
                "problems": [problem.as_json() for problem in calculation.problems],
                "format": FORMAT,
            },
        )
        for measure in calculation.measures:
            _store_measure(administration, measure, now)
        ScoreRow.objects.filter(administration=administration).delete()
        stored = 0
        while batch := list(islice(rows, BATCH)):
            ScoreRow.objects.bulk_create(batch)
            stored += len(batch)
            if progress:
                progress.advance(len(batch))
        # Last, so that a person who decides about an item waits for a moment only.
        lock_administration(administration, by="scores", seen=None)
        if released_items(administration) != released:
            raise ReleasesChanged
        if progress:
            progress.confirm()
    return stored


def _store_measure(
    administration: Administration, measure: CalculatedMeasure, now: datetime
) -> None:
    scale = measure.scale
    Calibration.objects.update_or_create(
        administration=administration,
        measure=measure.definition["name"],
        defaults={
            "anchored_to": measure.anchored_to,
            "items": [asdict(item) for item in measure.result.items],
            "people": measure.people,
            "reliability": measure.result.reliability,
            "separation": measure.result.separation,
            "scale_mean": scale.mean if scale else None,
            "scale_deviation": scale.deviation if scale else None,
            "scale_unit": scale.unit if scale else "",
            "schools_mean": measure.differences.mean,
            "schools_deviation": measure.differences.between,
            "people_deviation": measure.differences.within,
            "linking_error": measure.result.linking_error
            if measure.anchored_to
            else None,
            "problems": [problem.as_json() for problem in measure.problems],
            "survey_digest": administration.published_id,
            "software": SOFTWARE,
            "calculated_at": now,
        },
    )
