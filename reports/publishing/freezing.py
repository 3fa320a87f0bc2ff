"""Make the content of a publication: what everybody may read of each place.

Figures come from `reports.results.visible`, `reports.results.sums`,
`reports.scores.visible` and `lines_for_everybody` only, which leave out what is hidden.
A school is published if it has reached its threshold, shows so itself, and is not
hidden in the results; a district, if one of its schools is; and the state.

The figures of a district or the state are those of the published schools together.
With other schools in them, those of a school without a report could be calculated.
Scores are the released ones, as in the console, where these are of the same schools
and people; otherwise they are added up from those of the published schools. If no
school is published, the state's are of everybody, unless these are few schools:
coordinators know how many have answered in their own.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from typing import Any, NotRequired, TypedDict

from django.db import connection, transaction
from django.utils import translation

from reports.models import (
    Calibration,
    GroupResults,
    Publication,
    PublishedPlace,
    Scoring,
)
from reports.models.publications import public_condition
from reports.publishing.score_sums import SumOfScores
from reports.rates.rate_lines import percent
from reports.rates.visible_rates import lines_for_everybody, schools_with_reports
from reports.releases.levels import LEVELS, STATE, Place
from reports.releases.summed_schools import summed_schools
from reports.results.distributions import ItemDistribution
from reports.results.sums import SchoolAnswers
from reports.results.visible import VisibleGroup, visible_groups
from reports.school_report.report import report_language_for
from reports.scores.benchmark_titles import (
    published_errors,
    title_of_benchmark,
    with_benchmarks,
)
from reports.scores.scale import PEOPLE, POINTS
from reports.scores.visible import (
    Scores,
    VisibleScore,
    benchmark_key,
    earlier_waves,
    measures_in,
    measures_in_survey,
    span_of,
    visible_scores,
)
from reports.scores.words import score_figures
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.schema import Measures
from survey.models import Administration
from survey.taking.published import published_survey

# Places whose figures are read at a time.
BATCH = 500
# In figures of everybody.
FEWEST_SCHOOLS = 10
# Goes up when frozen content means something else, so that pages can tell.
FORMAT = 5


class MeasureScale(TypedDict):
    """The scale of a measure: scores can be compared where the digest is the same."""

    digest: str
    # The standard error of its place on the benchmark's scale, in points.
    linking_error: float


class Frame(TypedDict):
    """What all pages of a publication share. Titles are by language."""

    format: int
    titles: dict[str, str]
    languages: list[str]
    survey_digest: str
    measures: Measures | None
    minimum_group: int
    opened: str
    closed: str
    # ISO times; of the scores "" without any.
    counted_at: str
    scored_at: str
    # Titles of the administrations whose people have the mean 50, by language.
    benchmarks: dict[str, list[str]]
    # Whether 20 points are a deviation of people instead of schools.
    is_of_people: bool
    # As `benchmark_titles.published_errors`; none of publications from before.
    published_errors: NotRequired[str]
    # By measure; older publications have none.
    scales: NotRequired[dict[str, MeasureScale]]
    software: list[str]
    schools: int
    # With people, but without a report.
    other_schools: int


class Rate(TypedDict):
    eligible: int
    finished: int
    # In percent, rounded down.
    rate: int | None


class Summary(TypedDict):
    # Of a school, or of all published schools in a place.
    rate: Rate
    # How many of them.
    schools: int
    # By measure or essential, as `SCORE_COLUMNS`; null is hidden. Before format 5, the
    # first two, and the score was not drawn to a mean. Of a larger place whose errors
    # are by school, also the standard error of its mean as of independent people.
    scores: dict[str, Sequence[float | None] | None]
    # Of a school whose scores are those of its grade span: the span.
    span: NotRequired[str]
    # Of a larger place: by measure or essential, the standard error by school of the
    # change since each earlier administration with public results, by its key.
    change_errors: NotRequired[dict[str, dict[str, float]]]
    # How far the errors of both go together, because the same people answered.
    shared_errors: NotRequired[dict[str, dict[str, float]]]


class Answers(TypedDict):
    """The distributions of a place, as in `VisibleGroup`."""

    people: int
    items: dict[str, ItemAnswers]
    hidden_items: list[str]
    hidden_options: dict[str, list[str]]


class ItemAnswers(TypedDict):
    measured: str
    width: str
    answered: int
    skipped: int
    not_applicable: int
    not_reached: int
    values: dict[str, int]
    # The bounds of other answers, in percent, and how many people gave one of them.
    under: dict[str, int]
    over: dict[str, int]
    coded_people: int


@dataclass(frozen=True, slots=True)
class FrozenPlace:
    """The columns of a `PublishedPlace`, except for searches."""

    level: str
    place_id: int
    district_id: int
    name: str
    code: str
    summary: Summary
    answers: Answers

    @property
    def digest(self) -> str:
        return digest_of(self.as_json())

    def as_json(self) -> dict[str, Any]:
        # `asdict` would copy all of the answers, which takes longer than counting them.
        return {field.name: getattr(self, field.name) for field in fields(self)}


def canonical(content: object) -> bytes:
    """Return JSON in the form of which a digest is made."""
    text = json.dumps(
        content, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return text.encode()


def digest_of(content: object) -> str:
    return hashlib.sha256(canonical(content)).hexdigest()


def publication_digest(frame: Frame, places: Sequence[tuple[str, int, str]]) -> str:
    """Return the digest over all; `places` are level, key and digest."""
    return digest_of([frame, sorted(places)])


def recomputed_digest(publication: Publication) -> str:
    """Return the digest of what is stored. 1 statement, for all places."""
    places = []
    for row in publication.places.order_by("pk").iterator(BATCH):
        names = ("level", "place_id", "district_id", "name", "code")
        content: dict[str, Any] = {name: getattr(row, name) for name in names}
        content |= {"summary": row.summary, "answers": row.answers}
        places.append((row.level, row.place_id, digest_of(content)))
    return publication_digest(publication.frame, places)


@contextmanager
def one_moment() -> Iterator[None]:
    """Let all statements see the same moment. On SQLite, each transaction does."""
    # A test may have opened a transaction already.
    nested = connection.in_atomic_block
    with transaction.atomic():
        if connection.vendor == "postgresql" and not nested:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
                )
        yield


def basis_of(administration: Administration) -> str:
    """Return which figures would be published now; "" if there are none.

    1 statement, and 2 more if the administration was read without its roll-ups.
    """
    roll_up = getattr(administration, "results_roll_up", None)
    if roll_up is None or roll_up.hidden_as_of != roll_up.as_of:
        return ""
    scoring = Scoring.objects.current().filter(pk=administration.pk).first()
    # Rates are published too, and decide which schools have a report.
    rates = getattr(administration, "roll_up", None)
    return digest_of(
        [
            administration.published_id,
            *(
                moment.isoformat() if moment else ""
                for moment in (
                    roll_up.as_of,
                    scoring.calculated_at if scoring else None,
                    rates.changed_at if rates else None,
                )
            ),
        ]
    )


def has_content(administration: Administration) -> bool:
    """Test if anything would be published, as in `Freezer`. At most 3 statements."""
    everyone = GroupResults.objects.filter(administration=administration, attribute="")
    schools = everyone.filter(level=LEVELS.SCHOOL)
    with_report = schools_with_reports(administration).values("school_id")
    return everyone.filter(level=LEVELS.STATE, is_hidden=False).exists() and (
        schools.filter(is_hidden=False, place_id__in=with_report).exists()
        or schools.count() >= FEWEST_SCHOOLS
    )


@dataclass
class Freezer:
    """Reads the content of a publication, in one language-independent form."""

    administration: Administration
    # Keys of the schools to read; None is all of them.
    only: Collection[int] | None = None

    def __post_init__(self) -> None:
        # The schools whose report the threshold allows, and nothing hides.
        # Those that others see in sums stay: otherwise, they could be subtracted.
        self.summed = summed = summed_schools(self.administration)
        # As `Summary.shared_errors` of the state, once it is frozen.
        self.shared_errors: Mapping[str, Mapping[str, float]] = {}
        self.reached = {
            line.school.pk: line
            for line in lines_for_everybody(self.administration, only=self.only)
            if line.is_reached or (line.school.pk in summed and not line.is_hidden)
        }

    def places(self) -> Iterator[FrozenPlace]:
        """Yield schools, districts and the state. Nothing if the state is hidden."""
        if wholes := list(self.wholes()):
            yield from self.schools()
            yield from wholes

    def schools(self) -> Iterator[FrozenPlace]:
        """Yield the schools alone, even if the state is hidden.

        4 statements, and 1 for each batch.
        """
        places = self._places
        for start in range(0, len(places), BATCH):
            batch = places[start : start + BATCH]
            groups = visible_groups(self.administration, batch)
            for place in batch:
                if group := groups.get(place):
                    school = self.reached[place[1]].school
                    rates = [self._rate(school.pk)]
                    scores = self._scores.get(place, {})
                    summary = _summary(rates, scores)
                    if span := span_of(scores):
                        summary["span"] = span
                    if shared := self._shared_errors_of_school(scores):
                        summary["shared_errors"] = shared
                    yield FrozenPlace(
                        *(*place, school.district_id, school.name, school.code),
                        *(summary, _answers(group)),
                    )

    def wholes(self) -> Iterator[FrozenPlace]:
        """Yield districts and the state: the sums of the published schools."""
        everybody = visible_groups(self.administration, [STATE]).get(STATE)
        if everybody is None:
            return
        content = measures_in_survey(self.administration)
        larger_places = [(LEVELS.DISTRICT.value, key) for key in sorted(self.published)]
        for place in [*larger_places, STATE]:
            name = code = ""
            if place == STATE:
                schools = list(chain.from_iterable(self.published.values()))
            else:
                schools = self.published[place[1]]
                district = self.reached[schools[0]].school.district
                name, code = district.name, district.code
            if schools:
                group = self._answers_of_schools.total(schools).group(
                    self.administration
                )
                scores = self._scores_of_whole(content, place, schools)
            elif self._counted_schools() >= FEWEST_SCHOOLS:
                group = everybody
                scores = self._scores.get(STATE, {})
            else:
                return
            summary = _summary([self._rate(key) for key in schools], scores)
            if errors := self._of_public_rounds(
                place, {n: each.change_errors for n, each in scores.items() if each}, 1
            ):
                summary["change_errors"] = errors
            if shared := self._of_public_rounds(
                place, {n: each.shared_errors for n, each in scores.items() if each}, 2
            ):
                summary["shared_errors"] = shared
            if place == STATE:
                self.shared_errors = shared
            yield FrozenPlace(*place, 0, name, code, summary, _answers(group))

    def _scores_of_whole(
        self, content: Measures, place: Place, schools: Sequence[int]
    ) -> Scores:
        """Return the scores of the published schools of a place together."""
        total = SumOfScores(content)
        for key in schools:
            total.add(self._scores.get((LEVELS.SCHOOL.value, key), {}))
        scores = total.scores()
        district = None if place == STATE else place[1]
        summed = {
            school for school, of in self.summed.items() if district in (None, of)
        }
        if summed != set(schools):
            return scores
        released = self._scores.get(place, {})
        # A school that hides a measure since the release is still in its mean.
        same = {
            name
            for name, measure in total.by_measure.items()
            if (score := released.get(name)) and score.people == measure.weight
        }
        scores |= {name: released[name] for name in same}
        for essential in content["essentials"]:
            name = essential["name"]
            parts = {part["name"] for part in measures_in(content, name)}
            if parts and parts <= same and released.get(name):
                scores[name] = released[name]
        return scores

    def _of_public_rounds(
        self,
        place: Place,
        figures: Mapping[str, Mapping[str, float] | None],
        digits: int,
    ) -> dict[str, dict[str, float]]:
        """Return figures of changes since public scores, by the earlier round."""
        public = {
            name: {
                key: round(figure, digits)
                for key, figure in by_round.items()
                if name in self._public_scores.get(place, {}).get(key, ())
            }
            for name, by_round in figures.items()
            if by_round
        }
        return {name: by_round for name, by_round in public.items() if by_round}

    def _shared_errors_of_school(self, scores: Scores) -> dict[str, dict[str, float]]:
        """Return how far a school's errors go together with those of public rounds.

        Only what the state says too: all schools have the same part in it.
        """
        shared = {
            name: {
                key: round(score.shared_errors[key], 2)
                for key in by_round.keys() & score.shared_errors.keys()
            }
            for name, by_round in self.shared_errors.items()
            if (score := scores.get(name)) and score.shared_errors
        }
        return {name: by_round for name, by_round in shared.items() if by_round}

    @cached_property
    def _public_scores(self) -> dict[Place, dict[str, set[str]]]:
        """Return the names of public scores of larger places, by earlier round.

        Only of those that are the released ones of all schools of the round: the error
        of a change is made of these, and would tell of a school that is not published.
        5 statements for each public round.
        """
        waves = {wave.pk: wave for wave in earlier_waves(self.administration)}
        rows = PublishedPlace.objects.filter(
            public_condition("publication__"), publication__administration__in=waves
        ).exclude(level=LEVELS.SCHOOL)
        columns = ("publication__administration", "level", "place_id", "summary")
        by_round: defaultdict[int, dict[Place, Summary]] = defaultdict(dict)
        for key, level, place_id, summary in rows.values_list(*columns):
            by_round[key][level, place_id] = summary
        public: defaultdict[Place, dict[str, set[str]]] = defaultdict(dict)
        for key, summaries in by_round.items():
            schools = Counter(summed_schools(waves[key]).values())
            released = visible_scores(waves[key], summaries)
            for place, summary in summaries.items():
                of_place = schools.total() if place == STATE else schools[place[1]]
                if summary["schools"] == of_place:
                    public[place][str(key)] = {
                        name
                        for name, score in released.get(place, {}).items()
                        if score and summary["scores"].get(name) == _figures(score)
                    }
        return public

    @cached_property
    def published(self) -> dict[int, list[int]]:
        """Return the keys of the published schools, by district. 1 statement."""
        by_district: defaultdict[int, list[int]] = defaultdict(list)
        for key in sorted(self._answers_of_schools.schools):
            by_district[self.reached[key].school.district_id].append(key)
        return dict(by_district)

    @cached_property
    def _answers_of_schools(self) -> SchoolAnswers:
        return SchoolAnswers.of(self.administration, self.reached)

    @property
    def _places(self) -> list[Place]:
        return [(LEVELS.SCHOOL.value, key) for key in sorted(self.reached)]

    @cached_property
    def _scores(self) -> dict[Place, Scores]:
        """Return the scores of schools, and the released ones of larger places."""
        districts = {line.school.district_id for line in self.reached.values()}
        larger_places = [(LEVELS.DISTRICT.value, key) for key in sorted(districts)]
        return visible_scores(
            self.administration, [*self._places, *larger_places, STATE]
        )

    def _rate(self, school: int) -> Rate:
        line = self.reached[school]
        return Rate(eligible=line.eligible, finished=line.finished or 0, rate=line.rate)

    def _counted_schools(self) -> int:
        """Return in how many schools people have answered. 1 statement."""
        schools = GroupResults.objects.filter(
            administration=self.administration, level=LEVELS.SCHOOL, attribute=""
        )
        return schools.count()

    def frame(self, schools: int) -> Frame:
        """Return the frame of a publication with so many schools."""
        administration = self.administration
        roll_up = administration.results_roll_up
        scoring = Scoring.objects.current().filter(pk=administration.pk).first()
        languages = published_survey(administration.published_id).languages
        calibrations = list(with_benchmarks(administration))
        titles, of_benchmarks = {}, {}
        for code in languages:
            with translation.override(report_language_for(code)):
                titles[code] = administration.title
                of_benchmarks[code] = sorted(set(map(title_of_benchmark, calibrations)))
        rated = self.administration.rates.filter(eligible__gt=0).count()
        return Frame(
            format=FORMAT,
            titles=titles,
            languages=languages,
            survey_digest=administration.published_id,
            measures=measures_of(administration.published.survey),
            minimum_group=roll_up.minimum_group or administration.minimum_group,
            opened=administration.opens_at.isoformat(),
            closed=administration.closes_at.isoformat(),
            counted_at=roll_up.as_of.isoformat(),
            scored_at=scoring.as_of.isoformat() if scoring else "",
            benchmarks=of_benchmarks,
            is_of_people=any(
                calibration.scale_unit == PEOPLE for calibration in calibrations
            ),
            published_errors=published_errors(calibrations),
            scales={each.measure: _scale(each) for each in calibrations},
            software=sorted({calibration.software for calibration in calibrations}),
            schools=schools,
            other_schools=max(rated - schools, 0),
        )


def _scale(calibration: Calibration) -> MeasureScale:
    benchmark = calibration.anchored_to or calibration
    deviation = calibration.scale_deviation or 1.0
    return MeasureScale(
        # A benchmark that is calculated again may have other thresholds.
        digest=digest_of(
            [
                *(benchmark_key(calibration), benchmark.items),
                *(calibration.scale_unit, calibration.scale_mean, deviation),
                {
                    span: stored["scale"]
                    for span, stored in calibration.span_scales.items()
                },
            ]
        ),
        linking_error=POINTS * (calibration.linking_error or 0.0) / deviation,
    )


def _summary(rates: Sequence[Rate], scores: Scores) -> Summary:
    eligible = sum(rate["eligible"] for rate in rates)
    finished = sum(rate["finished"] for rate in rates)
    return Summary(
        rate=Rate(
            eligible=eligible, finished=finished, rate=percent(finished, eligible)
        ),
        schools=len(rates),
        scores={name: _figures(score) for name, score in scores.items()},
    )


def _figures(score: VisibleScore | None) -> list[float | None] | None:
    if score is None:
        return None
    figures = score_figures(score)
    if score.school_error is not None and score.people_error is not None:
        figures.append(round(score.people_error, 1))
    return figures


def _bounds(item: ItemDistribution, *, is_over: bool) -> dict[str, int]:
    return {
        value: share.percent
        for value, share in item.coded.items()
        if share.is_over == is_over
    }


def _answers(group: VisibleGroup) -> Answers:
    return Answers(
        people=group.people,
        items={
            name: ItemAnswers(
                measured=item.measured,
                width=item.width,
                answered=item.answered,
                skipped=item.skipped,
                not_applicable=item.not_applicable,
                not_reached=item.not_reached,
                values=dict(item.values),
                under=_bounds(item, is_over=False),
                over=_bounds(item, is_over=True),
                coded_people=item.coded_people,
            )
            for name, item in group.items.items()
        },
        hidden_items=sorted(group.hidden_items),
        hidden_options={
            item: sorted(options) for item, options in group.hidden_options.items()
        },
    )
