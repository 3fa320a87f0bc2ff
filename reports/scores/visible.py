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
from reports.scores.scale import POINTS, band
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.schema import MeasureDefinition, Measures
from survey.models import Administration, SurveyMeasures

# The standard error of the difference of two numbers that are rounded.
ROUNDING = math.sqrt(1 / 6)
# More places of a level are read with all others of it: that is faster.
MOST_BY_NUMBER = 500


class VisibleScore(NamedTuple):
    """A score that is shown, of a measure or an essential."""

    score: int
    # Benchmark calibrations: scores can be compared where they are the same.
    benchmarks: frozenset[int]
    # Of measures: who have one.
    people: int | None = None
    # The standard error in points.
    error: float | None = None

    @property
    def band(self) -> int:
        """1 for the lowest to 5 for the highest."""
        return band(self.score)

    def error_of_change(self, before: VisibleScore) -> float | None:
        """Return the standard error of the change since `before`, in points.

        Never 0, although all people may have the same measure: scores are rounded.
        """
        if self.error is None or before.error is None:
            return None
        return math.hypot(self.error, before.error, ROUNDING)


# By name of the measure or essential; None is hidden.
Scores: TypeAlias = dict[str, VisibleScore | None]


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
    chosen = _chosen(wanted)
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
    scales = _scales(administrations)
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
    for key, place, measures, essentials, errors in _stored(
        scores, contents.values(), name
    ):
        content = contents.get(by_key[key].published.survey_id)
        if content and place in wanted:
            by_wave[key][place] = content.scores(
                measures,
                essentials,
                errors,
                scales[key],
                hidden.get((key, *place)),
                by_key[key].minimum_group,
            )
    return by_wave


def _stored(
    rows: QuerySet[ScoreRow], contents: Collection[_Content], name: str
) -> Iterator[tuple[int, Place, Any, Any, Any]]:
    """Yield administration, place, measures, essentials and their errors. 1 statement.

    With a name, no more than `_Content.scores` reads of it.
    """
    of_place = ("administration", "level", "place_id")
    if not name:
        columns = ("measures", "essentials", "essential_errors")
        for key, level, place, *stored in rows.values_list(*of_place, *columns):
            yield key, (level, place), stored[0], stored[1], stored[2]
        return
    measures = sorted({measure for content in contents for measure in content.measures})
    parts = [KeyTransform(measure, "measures") for measure in measures]
    if any(name in content.essentials for content in contents):
        parts += [KeyTransform(name, "essentials")]
        parts += [KeyTransform(name, "essential_errors")]
    # As texts, which are decoded together.
    texts = [Cast(part, TextField()) for part in parts]
    for key, level, place, *parts_of_row in rows.values_list(*of_place, *texts):
        decoded = json.loads(f"[{','.join(text or 'null' for text in parts_of_row)}]")
        score, error = decoded[len(measures) :] or (None, None)
        by_measure = dict(zip(measures, decoded, strict=False))
        of_essential = {} if score is None else {name: score}
        yield key, (level, place), by_measure, of_essential, {name: error}


def _chosen(places: Iterable[Place]) -> Q | None:
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


def _scales(
    administrations: Sequence[Administration],
) -> dict[int, dict[str, tuple[frozenset[int], float]]]:
    """Return the benchmark and the deviation of each measure."""
    scales: dict[int, dict[str, tuple[frozenset[int], float]]] = {
        administration.pk: {} for administration in administrations
    }
    for key, pk, measure, anchored_to, deviation in Calibration.objects.filter(
        administration__in=scales
    ).values_list("administration", "pk", "measure", "anchored_to", "scale_deviation"):
        if deviation is not None:
            scales[key][measure] = (frozenset((anchored_to or pk,)), deviation)
    return scales


@dataclass(frozen=True, slots=True)
class _Content:
    """The items of each measure, and the measures of each essential, by name."""

    measures: Mapping[str, frozenset[str]]
    essentials: Mapping[str, Sequence[str]]
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
                essential["name"]: [
                    part["name"] for part in measures_in(content, essential["name"])
                ]
                for essential in content["essentials"]
                if name in ("", essential["name"])
            },
            name,
        )

    def scores(
        self,
        measures: Mapping[str, Sequence[float | None] | None],
        essentials: Mapping[str, int],
        errors: Mapping[str, float | None],
        scales: Mapping[str, tuple[frozenset[int], float]],
        hidden_items: Sequence[str] | None,
        minimum: int,
    ) -> Scores:
        """Return the scores of a place. `hidden_items` are None if it is hidden."""
        scores: Scores = {}
        shown: dict[str, bool] = {}
        for name, items in self.measures.items():
            stored = measures.get(name)
            people, _mean, error, score = stored or (0, None, None, None)
            if name not in scales or score is None and (people or stored is None):
                continue
            # A place without a score and people has only schools that hide theirs.
            shown[name] = (
                score is not None
                and hidden_items is not None
                and items.isdisjoint(hidden_items)
                and (people or 0) >= minimum
            )
            if self.name not in ("", name):
                continue
            scores[name] = None
            if shown[name] and score is not None:
                benchmarks, deviation = scales[name]
                error = None if error is None else POINTS * error / deviation
                scores[name] = VisibleScore(
                    int(score), benchmarks, int(people or 0), error
                )
        for name, parts in self.essentials.items():
            if all(shown.get(part) for part in parts):
                if name in essentials:
                    benchmarks = frozenset().union(*(scales[part][0] for part in parts))
                    scores[name] = VisibleScore(
                        essentials[name], benchmarks, error=errors.get(name)
                    )
            elif name in essentials or shown.keys() >= set(parts):
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
) -> dict[int, int]:
    """Return the benchmark of a measure by administration. 1 statement.

    Scores can be compared where it is the same. Without a scale, there is none.
    """
    rows = Calibration.objects.filter(
        administration__in=administrations,
        measure=measure,
        scale_deviation__isnull=False,
    ).values_list("administration", "pk", "anchored_to")
    return {key: anchored_to or pk for key, pk, anchored_to in rows}


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
