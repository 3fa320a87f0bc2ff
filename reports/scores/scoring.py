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
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from reports.answers.versions import SurveyVersion, versions_of
from reports.models import (
    Calibration,
    GroupResults,
    ResultsRollUp,
    ScoreRow,
    Scoring,
)
from reports.models.scores import FORMAT
from reports.rasch import VERSION
from reports.rasch.responses import Floats
from reports.rates.rollup_query import refresh_replica_timestamp
from reports.releases.changes import Recount, read_changes
from reports.releases.frozen_people import counts_erased_people
from reports.releases.layout import counted_items
from reports.releases.levels import LEVELS
from reports.releases.rollup import attributes_of, keeps_earlier_answers
from reports.releases.summed_schools import summed_schools
from reports.scores.benchmark import last_decision, released_items
from reports.scores.change_errors import store_change_errors
from reports.scores.group_tables import score_tables
from reports.scores.groups import (
    Grouping,
    GroupSums,
    Patterns,
    ScoredMeasure,
    group_rows,
    score_rows,
)
from reports.scores.measure_scores import CalculatedMeasure, calculate_measure
from reports.scores.problems import Kind, Problem
from reports.scores.returning_people import ReturningPeople, returning_people
from reports.scores.shrinkage import Shrinkage
from reports.scores.spans import SpanScale, spans_of_schools
from reports.scores.visible import decided, measures_in_survey
from reports.suppression.scores import decide_scores
from reports.suppression.tables import Mask
from survey.fieldwork.administrations.changes import lock_administration
from survey.instrument.definitions.schema import Measures
from survey.models import Administration
from survey.work.jobs import JobRefused, Progress

log = logging.getLogger(__name__)

BATCH = 1000
SOFTWARE = f"rasch {VERSION}, numpy {np.__version__}, scipy {scipy.__version__}"


class DecisionsChanged(Exception):
    """Somebody decided about items or the benchmark during the calculation."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """What people have decided about items, and when about the benchmark."""

    released: Mapping[str, Collection[str]]
    benchmark: datetime | None

    @classmethod
    def of(cls, administration: Administration) -> Decisions:
        return cls(released_items(administration), last_decision(administration))


@dataclass(frozen=True, slots=True)
class ScoringOutcome:
    """What was calculated; nothing if the scores were there. `reading` is a part."""

    people: int = 0
    measures: int = 0
    rows: int = 0
    reading: float = 0.0
    seconds: float = 0.0


@dataclass
class Calculation:
    """All that is stored of an administration."""

    as_of: datetime
    people: int
    # Grade spans by school.
    spans: Mapping[int, str]
    measures: list[CalculatedMeasure] = field(default_factory=list)
    # By the positions of two measures of an essential, as `Grouping.products`: of
    # everyone.
    products: dict[tuple[int, int], Floats] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    # The measures of the sample of `ReturningPeople`, by name.
    of_returning: dict[str, Floats] = field(default_factory=dict)


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
    scored = Scoring.objects.filter(pk=administration.pk)
    if not recalculate and scored.current().exists():
        return ScoringOutcome()
    _refuse_while_answers_change(administration, is_scored=scored.exists())
    refresh_replica_timestamp()
    [version] = versions_of([administration]).values()
    content = measures_in_survey(administration)
    if progress:
        progress.begin_step(_("Reading the responses."))
    answers = read_answers(administration, version, content)
    returning = returning_people(administration, answers.people)
    reading = time.monotonic() - start
    groupings = [
        Grouping.of(attribute, answers.people)
        for attribute in attributes_of(administration)
    ]
    patterns = Patterns.of(groupings)
    while True:
        decisions = Decisions.of(administration)
        calculation = _calculate_all(
            *(administration, version, content, answers, groupings, patterns),
            decisions.released,
            returning,
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
                decisions,
                returning,
                progress,
                recalculate=recalculate,
            )
            break
        except DecisionsChanged:
            log.info("Decisions about %s: calculating again", administration)
    seconds = time.monotonic() - start
    log.info("Scored %s in %.2f s", administration, seconds)
    return ScoringOutcome(
        calculation.people, len(calculation.measures), stored, reading, seconds
    )


def _refuse_while_answers_change(
    administration: Administration, *, is_scored: bool
) -> None:
    if administration.state != Administration.State.CLOSED:
        raise JobRefused(_("Scores are calculated once nobody can answer any more."))
    if is_scored and keeps_earlier_answers(administration):
        raise JobRefused(
            _(
                "Scores stay as they are: in some schools a few people have changed"
                " their answers since the release."
            )
        )
    # Their results show what these people answered: scores without it would tell that.
    if not is_scored and counts_erased_people(administration):
        raise JobRefused(
            _(
                "Scores can't be calculated: people who are counted in the results"
                " have been erased since."
            )
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
    returning: ReturningPeople | None,
    progress: Progress | None,
) -> Calculation:
    if progress:
        progress.begin_step(
            _("Calculating the measures."), total=len(content["measures"])
        )
    calculation = Calculation(
        answers.as_of, len(answers.people), spans_of_schools(administration)
    )
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
        measure, measured = calculate_measure(
            *(administration, version, definition, answers, groupings),
            *(patterns, calculation.spans, hidden),
            released.get(definition["name"], ()),
        )
        calculation.measures.append(measure)
        if returning:
            calculation.of_returning[definition["name"]] = measured[returning.rows]
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
    measures = [_scored(measure) for measure in calculation.measures]
    counted = np.array([measure.counted for measure in calculation.measures])
    districts, key = answers.people.districts, administration.pk
    sums = [
        GroupSums(
            grouping, np.array([each.sums[number] for each in calculation.measures])
        )
        for number, grouping in enumerate(groupings)
    ]
    everyone = replace(sums[0], products=calculation.products)
    everyone = everyone.without_few_pairs(measures, administration.minimum_group)
    by_span = _measures_by_span(calculation, sums[0].grouping)
    span_of_school = {
        school: span for school, span in calculation.spans.items() if span in by_span
    }
    for row in score_rows(everyone, counted, districts, measures, content, key):
        if row.level != LEVELS.SCHOOL or row.place_id not in span_of_school:
            yield row
    for span, of_span in by_span.items():
        chosen = np.array(
            [
                span_of_school.get(place) == span
                for place in everyone.grouping.schools.tolist()
            ]
        )
        for row in score_rows(
            _of_schools(everyone, chosen),
            *(counted[:, chosen], districts, of_span, content, key),
        ):
            # Larger places are compared with all schools.
            if row.level == LEVELS.SCHOOL:
                row.span = span
                yield row
    tables = score_tables(
        *(administration, groupings, patterns, measures),
        [each.groups for each in calculation.measures],
        *(counted, districts),
    )
    shown = decide_scores(tables)
    for number, columns in enumerate(patterns.attributes):
        for row in group_rows(
            *(sums[number + 1], shown, number, columns, districts, measures),
            *(content, key),
        ):
            if row.level == LEVELS.SCHOOL and row.place_id in span_of_school:
                row.span = span_of_school[row.place_id]
                _score_again(row, by_span[row.span])
            yield row


def _measures_by_span(
    calculation: Calculation, grouping: Grouping
) -> dict[str, list[ScoredMeasure]]:
    """Return the measures on the scale of each span that is used."""
    known = set().union(*(measure.spans for measure in calculation.measures))
    used = {calculation.spans.get(key, "") for key in grouping.schools.tolist()}
    return {
        span: [
            _scored(measure, measure.spans.get(span))
            for measure in calculation.measures
        ]
        for span in sorted(known & used)
    }


def _score_again(row: ScoreRow, measures: Sequence[ScoredMeasure]) -> None:
    """Give a row's measures their scores on these scales."""
    for measure in measures:
        if stored := row.measures.get(measure.definition["name"]):
            people, mean, error, _score = stored
            score = None if mean is None else measure.score(mean, people)
            row.measures[measure.definition["name"]] = [people, mean, error, score]


def _scored(measure: CalculatedMeasure, at: SpanScale | None = None) -> ScoredMeasure:
    """Return a measure on the scale of all schools, or of a span."""
    scale = at.scale if at else measure.scale
    differences = at.differences if at else measure.differences
    shrinkage = Shrinkage.of(scale, differences) if scale else None
    return ScoredMeasure(measure.definition, scale, shrinkage)


def _of_schools(group_sums: GroupSums, chosen: Mask) -> GroupSums:
    """Return the sums of some schools."""
    grouping = group_sums.grouping
    return GroupSums(
        # Nothing adds up by its keys any more.
        replace(grouping, schools=grouping.schools[chosen]),
        group_sums.measures[:, :, chosen],
        {pair: numbers[:, chosen] for pair, numbers in group_sums.products.items()},
    )


def _store(
    administration: Administration,
    calculation: Calculation,
    rows: Iterator[ScoreRow],
    decisions: Decisions,
    returning: ReturningPeople | None,
    progress: Progress | None,
    *,
    recalculate: bool,
) -> int:
    """Replace everything in one transaction; return the number of rows.

    Raises DecisionsChanged if people have decided something since the calculation.
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
                "effects": None,
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
        store_change_errors(administration, returning, calculation.of_returning)
        # Last, so that a person who decides about an item waits for a moment only.
        lock_administration(administration, by="scores", seen=None)
        if Decisions.of(administration) != decisions:
            raise DecisionsChanged
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
            if measure.anchored_to or measure.imported
            else None,
            "imported": measure.imported,
            "span_scales": {span: at.as_json() for span, at in measure.spans.items()},
            "problems": [problem.as_json() for problem in measure.problems],
            "survey_digest": administration.published_id,
            "software": SOFTWARE,
            "calculated_at": now,
        },
    )
