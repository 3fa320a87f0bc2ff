"""Read scores for pages and files, without what is hidden.

Scores of everyone at a place, on measures and essentials. Hidden are those of places
that are hidden, or for which this is not decided; of measures with an item that is
hidden there; of measures that fewer people have than the administration's minimum;
and of essentials with a hidden measure. Scores in another format than the present one
do not exist.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from django.db.models import (
    Case,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, Coalesce

from reports.models import Calibration, GroupResults, ScoreRow
from reports.models.scores import FORMAT
from reports.releases.levels import LEVELS, Place
from reports.scores.scale import (
    CERTAIN,
    POINTS,
    Scale,
    band,
    band_chances,
    essential_score,
    rounded,
    within_scale,
)
from reports.scores.shrinkage import (
    DOUBTED_RELIABILITY,
    LEAST_RELIABILITY,
    SchoolDifferences,
    Shrinkage,
    likely_error,
)
from reports.scores.spans import SpanScale
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.schema import MeasureDefinition, Measures
from survey.models import Administration, SurveyMeasures

# The standard error of the difference of two numbers that are rounded.
ROUNDING = math.sqrt(1 / 6)
# A band that is at least so probable is named beside that of the score.
LEAST_CHANCE = 0.2
# More places of a level are read with all others of it: that is faster.
MOST_BY_NUMBER = 500


class BenchmarkKey(NamedTuple):
    """What a score is compared with. Scores on the same scale have the same."""

    # Of the calibration that is the benchmark; 0 for a published one with thresholds.
    calibration: int
    # Of the published benchmark; 0 for none.
    imported: int = 0
    # "" for all schools.
    span: str = ""


class VisibleScore(NamedTuple):
    """A score that is shown, of a measure or an essential."""

    # Drawn toward the mean of schools.
    score: int
    # Scores can be compared where they are the same.
    benchmarks: frozenset[BenchmarkKey]
    # Of measures: who have one.
    people: int | None = None
    # The standard error of the score, in points.
    error: float | None = None
    # The share of its variance that is true; 0 where schools do not differ. None: not
    # known, as in older publications.
    reliability: float | None = None
    # The score of the answers alone, and its standard error.
    mean: int | None = None
    mean_error: float | None = None
    # Of measures: how it was drawn.
    shrinkage: Shrinkage | None = None
    # The standard error of the wave's place on the benchmark's scale, in points.
    linking_error: float = 0.0
    # Of measures: the same on the scale of all schools, if this is that of a grade
    # span, for sums of schools.
    of_all_schools: VisibleScore | None = None
    # Of larger places, whose people are alike within schools: the standard error of
    # the mean as if they were independent, and by school; None if it is not known.
    # `error` and `mean_error` are of the larger one.
    people_error: float | None = None
    school_error: float | None = None
    # The administration, and by the keys of earlier ones as text: how far the errors go
    # together, because the same people answered; and of larger places the standard
    # error by school of the change.
    administration: int = 0
    shared_errors: Mapping[str, float] | None = None
    change_errors: Mapping[str, float] | None = None
    # Of a group at a larger place: the standard error by school of its gap from the
    # other groups together, and how many groups there are with it.
    gap: tuple[float, int] | None = None

    @classmethod
    def drawn(
        cls,
        mean: int,
        error: float | None,
        *,
        benchmarks: frozenset[BenchmarkKey],
        people: int,
        shrinkage: Shrinkage | None,
        score: int | None = None,
        linking_error: float = 0.0,
        school_error: float | None = None,
    ) -> VisibleScore:
        """Return the score of a mean; `score` is what was stored of it.

        `error` is that of independent people.
        """
        of_people, reliability = error, None
        error = of_mean = larger_error(of_people, school_error)
        if shrinkage:
            reliability = shrinkage.reliability(people)
            if score is None:
                score = rounded(within_scale(shrinkage.draw(mean, people)))
            # Of a single person, no error is known.
            if reliability and error is not None:
                error = larger_error(
                    shrinkage.error(reliability),
                    likely_error(school_error, reliability),
                )
        return cls(
            mean if score is None else score,
            *(benchmarks, people, error, reliability),
            *(mean, of_mean, shrinkage, linking_error),
            people_error=of_people,
            school_error=school_error,
        )

    @property
    def of_answers(self) -> tuple[int, float | None]:
        """Return the score of the answers alone, and its standard error."""
        if self.mean is None:
            return self.score, self.error
        return self.mean, self.mean_error

    @property
    def error_of_people(self) -> float | None:
        """Return the standard error of the mean, of independent people."""
        return self.of_answers[1] if self.people_error is None else self.people_error

    @property
    def band(self) -> int:
        """1 for the lowest to 5 for the highest; 0 where schools do not differ."""
        return 0 if self.reliability == 0 else band(self.score)

    @property
    def margin(self) -> float | None:
        """Return half the width of the 95 % interval, in points."""
        return None if self.error is None else CERTAIN * self.error

    @property
    def is_unreliable(self) -> bool:
        return self.reliability is not None and self.reliability < LEAST_RELIABILITY

    @property
    def possible_bands(self) -> tuple[int, int]:
        """Return the lowest and the highest band that is probable enough to be named.

        Its own band is always among them. Of the error as it is published, so that
        all pages say the same.
        """
        bands = [band(self.score)]
        if error := round(self.error or 0.0, 1):
            chances = band_chances(self.score, error)
            bands += [
                number
                for number, chance in enumerate(chances, 1)
                if chance >= LEAST_CHANCE
            ]
        return min(bands), max(bands)

    @property
    def is_doubtful(self) -> bool:
        """Test that the band could be another one, or tells little of the school."""
        low, high = self.possible_bands
        reliability = 1.0 if self.reliability is None else self.reliability
        return reliability < DOUBTED_RELIABILITY or low != high

    def change_since(self, before: VisibleScore) -> int:
        """Return the change of the answers, in points.

        Not that of scores: they are drawn to another mean, and by another share.
        """
        return self.of_answers[0] - before.of_answers[0]

    def error_of_change(self, before: VisibleScore) -> float | None:
        """Return the standard error of the change since `before`, in points.

        Never 0, although all people may have the same measure: scores are rounded. It
        is smaller where the same people answered in both rounds. Of larger places, it
        is the larger one of that by school, if it is known, and that of people.
        """
        error, earlier_error = self.error_of_people, before.error_of_people
        if error is None or earlier_error is None:
            return None
        by_school = self.school_error_of_change(before) or 0.0
        links = self.linking_error, before.linking_error
        shared = (self.shared_errors or {}).get(str(before.administration), 0.0)
        of_people = math.sqrt(
            error**2 + earlier_error**2 - 2 * shared * error * earlier_error
        )
        return math.hypot(max(of_people, by_school), ROUNDING, *links)

    def school_error_of_change(self, before: VisibleScore) -> float | None:
        """Return the standard error by school of the change of a larger place."""
        return (self.change_errors or {}).get(str(before.administration))


def larger_error(error: float | None, another: float | None) -> float | None:
    """Return the larger one of two errors; the first may be unknown, or the second."""
    if error is None or another is None:
        return error
    return max(error, another)


# By name of the measure or essential; None is hidden.
Scores: TypeAlias = dict[str, VisibleScore | None]


def span_of(scores: Scores) -> str:
    """Return the grade span with which a place is compared; "" for all schools."""
    keys = (key for score in scores.values() if score for key in score.benchmarks)
    return next((key.span for key in keys if key.span), "")


def has_scores(administration: Administration) -> bool:
    """Return whether scores have been calculated, in the present format."""
    scoring = getattr(administration, "scoring", None)
    return scoring is not None and scoring.is_current


def visible_scores(
    administration: Administration, places: Iterable[Place]
) -> dict[Place, Scores]:
    """Return the scores of each place. 4 statements.

    Places in which nobody has answered are left out, and so are measures without a
    scale.
    """
    return scores_of_waves([administration], places)[administration.pk]


def scores_of_waves(
    administrations: Sequence[Administration], places: Iterable[Place], name: str = ""
) -> dict[int, dict[Place, Scores]]:
    """Return the scores of each place by administration. 4 statements.

    Of one measure or essential, if its name is given.
    """
    by_wave: dict[int, dict[Place, Scores]] = {
        administration.pk: {} for administration in administrations
    }
    wanted = set(places)
    chosen = chosen_places(wanted)
    if chosen is None:
        return by_wave
    by_key = {administration.pk: administration for administration in administrations}
    contents = {
        survey: _Content.of(content, name)
        for survey, content in SurveyMeasures.objects.filter(
            survey__in={
                administration.published.survey_id for administration in administrations
            }
        ).values_list("survey", "content")
    }
    scales = scales_of(administrations)
    rows = GroupResults.objects.filter(chosen, administration__in=by_key, attribute="")
    # As text, since nearly all are empty: reading JSON takes most of the time.
    hidden = {
        (key, level, place): () if items == "[]" else json.loads(items)
        for key, level, place, items in decided(rows).values_list(
            *("administration", "level", "place_id"),
            Cast("hidden_items", TextField()),
        )
    }
    scores = ScoreRow.objects.filter(
        chosen,
        administration__in=by_key,
        administration__scoring__format=FORMAT,
        attribute="",
    )
    for key, place, span, *stored in _stored(scores, contents.values(), name):
        content = contents.get(by_key[key].published.survey_id)
        if content and place in wanted:
            figures = _StoredScores(*stored)
            scores_of_place = content.scores(
                *(figures, scales[key], span, hidden.get((key, *place))),
                by_key[key].minimum_group,
            )
            by_wave[key][place] = figures.with_changes(
                scores_of_place, key, is_larger=place[0] != LEVELS.SCHOOL
            )
    return by_wave


class _StoredScores(NamedTuple):
    """Columns of `ScoreRow`, or what was read of them."""

    measures: Mapping[str, Sequence[float | None] | None]
    essentials: Mapping[str, int]
    essential_errors: Mapping[str, float | None]
    school_errors: Mapping[str, Sequence[Any]] | None

    def school_error(self, name: str) -> float | None:
        error: float | None = (self.school_errors or {}).get(name, [None])[0]
        return error

    def of_changes(self, name: str, place: int) -> Mapping[str, float] | None:
        """Return a part of `school_errors` by the key of the earlier administration."""
        stored = (self.school_errors or {}).get(name, ())
        by_round = stored[place] if len(stored) > place else None
        return by_round if isinstance(by_round, dict) else None

    def with_changes(
        self, scores: Scores, administration: int, *, is_larger: bool
    ) -> Scores:
        """Return the scores of a place with the errors of their changes."""
        return {
            name: score
            and score._replace(
                administration=administration,
                shared_errors=self.of_changes(name, 2),
                change_errors=(self.of_changes(name, 1) or {}) if is_larger else None,
            )
            for name, score in scores.items()
        }


def _stored(
    rows: QuerySet[ScoreRow], contents: Collection[_Content], name: str
) -> Iterator[tuple[Any, ...]]:
    """Yield administration, place, span, and `_StoredScores`. 1 statement.

    With a name, no more than `_Content.scores` reads of it.
    """
    of_place = ("administration", "level", "place_id", "span")
    if not name:
        columns = _StoredScores._fields
        for key, level, place, span, *stored in rows.values_list(*of_place, *columns):
            yield key, (level, place), span, *stored
        return
    measures = sorted({measure for content in contents for measure in content.measures})
    parts = [KeyTransform(measure, "measures") for measure in measures]
    if any(name in content.essentials for content in contents):
        parts += [KeyTransform(name, "essentials")]
        parts += [KeyTransform(name, "essential_errors")]
    # As texts, which are decoded together.
    texts = [Cast(part, TextField()) for part in parts]
    texts.append(Cast("school_errors", TextField()))
    for key, level, place, span, *parts_of_row in rows.values_list(*of_place, *texts):
        decoded = json.loads(f"[{','.join(text or 'null' for text in parts_of_row)}]")
        *of_measures, by_school = decoded
        score, error = of_measures[len(measures) :] or (None, None)
        by_measure = dict(zip(measures, of_measures, strict=False))
        of_essential = {} if score is None else {name: score}
        figures = (by_measure, of_essential, {name: error}, by_school)
        yield key, (level, place), span, *figures


def chosen_places(places: Iterable[Place]) -> Q | None:
    keys: dict[str, list[int]] = {}
    for level, key in places:
        keys.setdefault(level, []).append(key)
    if not keys:
        return None
    chosen = Q()
    for level, of_level in keys.items():
        few = len(of_level) <= MOST_BY_NUMBER
        chosen |= Q(level=level, place_id__in=of_level) if few else Q(level=level)
    return chosen


def decided(rows: QuerySet[GroupResults]) -> QuerySet[GroupResults]:
    """Filter groups that are shown; none while that is not decided."""
    return rows.filter(
        is_hidden=False,
        administration__results_roll_up__hidden_as_of=F(
            "administration__results_roll_up__as_of"
        ),
    )


def differences_of(calibration: Calibration) -> SchoolDifferences:
    return SchoolDifferences(
        calibration.schools_mean or 0.0,
        calibration.schools_deviation or 0.0,
        calibration.people_deviation or 0.0,
    )


class MeasureScale(NamedTuple):
    """The scale of a measure in an administration, as it is stored."""

    benchmark: BenchmarkKey
    scale: Scale
    # None in scores that a test made, or an older version.
    shrinkage: Shrinkage | None
    # In logits.
    linking_error: float
    # Those of grade spans.
    spans: Mapping[str, SpanScale]

    @classmethod
    def of(cls, calibration: Calibration) -> MeasureScale | None:
        """Return None for a measure without a scale."""
        deviation = calibration.scale_deviation
        if deviation is None:
            return None
        scale = Scale(calibration.scale_mean or 0.0, deviation, calibration.scale_unit)
        is_known = calibration.schools_deviation is not None
        return cls(
            benchmark_key(calibration),
            scale,
            Shrinkage.of(scale, differences_of(calibration)) if is_known else None,
            calibration.linking_error or 0.0,
            {
                span: SpanScale.from_json(stored)
                for span, stored in calibration.span_scales.items()
            },
        )

    def score(
        self,
        stored: Sequence[float | None],
        span: str = "",
        school_error: float | None = None,
    ) -> VisibleScore | None:
        """Return the score of `ScoreRow.measures`, of a school of this span.

        Or that of a larger place, with its standard error by school.
        """
        if stored[3] is None:
            return None
        of_span = self.spans.get(span)
        if not of_span:
            return self._score(stored, school_error)
        scale = of_span.scale
        at_span = self._replace(
            benchmark=self.benchmark._replace(span=span),
            scale=scale,
            shrinkage=Shrinkage.of(scale, of_span.differences),
        )
        people, mean, error, _points = stored
        of_all_schools = self._score([people, mean, error, None])
        return at_span._score(stored)._replace(of_all_schools=of_all_schools)

    def _score(
        self, stored: Sequence[float | None], school_error: float | None = None
    ) -> VisibleScore:
        people, mean, error, score = stored
        points = float(score or 0) if mean is None else self.scale.points(mean)
        return VisibleScore.drawn(
            rounded(points),
            None if error is None else POINTS * error / self.scale.deviation,
            benchmarks=frozenset((self.benchmark,)),
            people=int(people or 0),
            shrinkage=self.shrinkage,
            score=None if score is None else int(score),
            linking_error=POINTS * self.linking_error / self.scale.deviation,
            school_error=school_error,
        )


def benchmark_key(calibration: Calibration) -> BenchmarkKey:
    """Return what the scores of a calibration are compared with."""
    imported = calibration.imported_id or 0
    anchored_to = calibration.anchored_to_id
    if imported:
        return BenchmarkKey(anchored_to or 0, imported)
    return BenchmarkKey(anchored_to or calibration.pk)


def scales_of(
    administrations: Sequence[Administration],
) -> dict[int, dict[str, MeasureScale]]:
    """Return the scale of each measure that has one. 1 statement."""
    scales: dict[int, dict[str, MeasureScale]] = {
        administration.pk: {} for administration in administrations
    }
    for calibration in Calibration.objects.filter(administration__in=scales).only(
        *("administration", "measure", "anchored_to", "scale_mean", "scale_deviation"),
        *("scale_unit", "schools_mean", "schools_deviation", "people_deviation"),
        *("linking_error", "imported", "span_scales"),
    ):
        if scale := MeasureScale.of(calibration):
            scales[calibration.administration_id][calibration.measure] = scale
    return scales


def essential_of(
    scores: Sequence[tuple[VisibleScore, bool]],
    error: float | None,
    score: int | None = None,
    school_error: float | None = None,
) -> VisibleScore:
    """Return the score of an essential from those of its measures.

    Each comes with whether high values are good; `error` is that of the mean of the
    answers alone, of independent people. It is as reliable as the least reliable of its
    measures.
    """
    of_people, error = error, larger_error(error, school_error)
    reliabilities = [
        part.reliability for part, _way in scores if part.reliability is not None
    ]
    of_mean, reliability = error, None
    if reliabilities and len(reliabilities) == len(scores):
        reliability = min(reliabilities)
        if reliability:
            error = likely_error(error, sum(reliabilities) / len(reliabilities))
    means = [(part.of_answers[0], way) for part, way in scores]
    if score is None:
        score = essential_score([(part.score, way) for part, way in scores])
    return VisibleScore(
        score,
        frozenset().union(*(part.benchmarks for part, _way in scores)),
        error=error,
        reliability=reliability,
        mean=essential_score(means),
        mean_error=of_mean,
        linking_error=math.hypot(*(part.linking_error for part, _way in scores))
        / len(scores),
        people_error=of_people,
        school_error=school_error,
    )


@dataclass(frozen=True, slots=True)
class _Content:
    """The items of each measure, and the measures of each essential, by name."""

    measures: Mapping[str, frozenset[str]]
    # The latter with whether high values are good.
    essentials: Mapping[str, Mapping[str, bool]]
    # The only measure or essential that is asked for; "" for all.
    name: str

    @classmethod
    def of(cls, content: Measures, name: str) -> _Content:
        """Of one measure, or an essential with its measures, if there is a name."""
        measures = measures_in(content, name) if name else content["measures"]
        return cls(
            {
                measure["name"]: frozenset(item["name"] for item in measure["items"])
                for measure in measures
            },
            {
                essential["name"]: {
                    part["name"]: part["direction"] == "positive"
                    for part in measures_in(content, essential["name"])
                }
                for essential in content["essentials"]
                if name in ("", essential["name"])
            },
            name,
        )

    def scores(
        self,
        stored: _StoredScores,
        scales: Mapping[str, MeasureScale],
        span: str,
        hidden_items: Sequence[str] | None,
        minimum: int,
    ) -> Scores:
        """Return the scores of a place. `hidden_items` are None if it is hidden."""
        scores: Scores = {}
        shown: Scores = {}
        for name, items in self.measures.items():
            figures = stored.measures.get(name)
            people, _mean, _error, points = figures or (0, None, None, None)
            if name not in scales or points is None and (people or figures is None):
                continue
            # A place without a score and people has only schools that hide theirs.
            is_shown = (
                hidden_items is not None
                and items.isdisjoint(hidden_items)
                and (people or 0) >= minimum
            )
            by_school = stored.school_error(name)
            shown[name] = (
                scales[name].score(figures, span, by_school)
                if is_shown and figures
                else None
            )
            if self.name in ("", name):
                scores[name] = shown[name]
        for name, parts in self.essentials.items():
            known = [
                (score, is_positive)
                for part, is_positive in parts.items()
                if (score := shown.get(part))
            ]
            if len(known) == len(parts):
                if name in stored.essentials:
                    scores[name] = essential_of(
                        *(known, stored.essential_errors.get(name)),
                        stored.essentials[name],
                        stored.school_error(name),
                    )
            elif name in stored.essentials or shown.keys() >= set(parts):
                scores[name] = None
        return scores


def measures_in_survey(administration: Administration) -> Measures:
    """Return the measures of the administration's survey, if any. 1 statement."""
    content = measures_of(administration.published.survey)
    return content or {"essentials": [], "measures": []}


def measures_in(content: Measures, name: str) -> list[MeasureDefinition]:
    """Return the measure with this name, or the measures of this essential."""
    return [
        measure
        for measure in content["measures"]
        if name in (measure["name"], measure["essential"])
    ]


def score_to_sort_by(
    administration: Administration, content: Measures, name: str, *, without: int
) -> Case | Value:
    """Return an expression for rows with a school: the score that the school shows.

    It is `without` where `visible_scores` has none. 1 statement, and a subquery. The
    place of a school in a sorted list would give a hidden score away.
    """
    measures = measures_in(content, name)
    items = {item["name"] for measure in measures for item in measure["items"]}
    rows = GroupResults.objects.filter(
        administration=administration, level=LEVELS.SCHOOL, attribute=""
    )
    shown = [
        school
        for school, hidden in decided(rows).values_list("place_id", "hidden_items")
        if items.isdisjoint(hidden)
    ]
    score = KeyTextTransform(name, "essentials")
    enough = Q()
    if any(measure["name"] == name for measure in measures):
        score = KeyTextTransform("3", KeyTransform(name, "measures"))
    scores = ScoreRow.objects.filter(
        administration=administration,
        administration__scoring__format=FORMAT,
        level=LEVELS.SCHOOL,
        attribute="",
        place_id=OuterRef("school_id"),
    )
    for number, measure in enumerate(measures):
        people = KeyTextTransform("0", KeyTransform(measure["name"], "measures"))
        scores = scores.alias(**{f"people_{number}": Cast(people, IntegerField())})
        enough &= Q(**{f"people_{number}__gte": administration.minimum_group})
    scores = scores.filter(enough).annotate(shown=Cast(score, IntegerField()))
    if not shown or not measures:
        return Value(without)
    return Case(
        When(
            school_id__in=shown,
            then=Coalesce(Subquery(scores.values("shown")[:1]), Value(without)),
        ),
        default=Value(without),
        output_field=IntegerField(),
    )


def benchmarks_of(
    administrations: Iterable[Administration], measure: str
) -> dict[int, BenchmarkKey]:
    """Return the benchmark of a measure by administration. 1 statement.

    Scores can be compared where it is the same. Without a scale, there is none.
    """
    rows = Calibration.objects.filter(
        administration__in=administrations,
        measure=measure,
        scale_deviation__isnull=False,
    ).only("administration", "anchored_to", "imported")
    return {each.administration_id: benchmark_key(each) for each in rows}


def earlier_waves(administration: Administration) -> list[Administration]:
    """Return the closed administrations before this one with scores, oldest first.

    Of the same survey, owner and role, as in `benchmark_of`. 1 statement.
    """
    survey = administration.published.survey
    return list(
        Administration.objects.filter(
            scoring__format=FORMAT,
            role=administration.role,
            district=administration.district_id,
            published__survey__name=survey.name,
            published__survey__district=survey.district_id,
            closes_at__lt=administration.closes_at,
        )
        .select_related("published__survey", "wave")
        .defer("published__definition", "published__survey__source")
        .order_by("closes_at", "pk")
    )
