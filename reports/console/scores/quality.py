"""Show how well each measure measured, and which items can be compared with waves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.http import Http404
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.http import Cell, StaffRequest
from accounts.language import language_to_read
from reports.answers.texts import localizer_for
from reports.console.scores.access import ScoresScope
from reports.console.scores.rates import no_scores
from reports.console.scores.table import measure_columns
from reports.models import (
    Calibration,
    ChosenBenchmark,
    ImportedBenchmark,
    Publication,
    ReleasedItem,
)
from reports.scores.benchmark import imported_benchmark, rounds_to_calculate
from reports.scores.benchmark_titles import published_errors, title_of_benchmark
from reports.scores.effects import Effects
from reports.scores.job import SCORE_JOBS
from reports.scores.problems import Kind, Problem
from reports.scores.quality import (
    fit_words,
    reliability_sentence,
    visible_calibrations,
)
from reports.scores.scale import CERTAIN
from reports.scores.spans import SPAN_NAMES
from reports.scores.visible import differences_of, measures_in_survey
from reports.suppression import HIDDEN
from reports.technical.requests import may_request
from survey.fieldwork.administrations import may_manage
from survey.instrument.definitions.schema import Measures
from survey.models import Administration, Job, PublishedSurvey
from survey.taking.published import published_survey

RELEASE, ANCHOR = "release", "anchor"
MISSING = "–"
# Columns of files, of items, and how they are stored.
FIGURES = {
    "infit": "infit",
    "outfit": "outfit",
    "displacement": "displacement",
    "displacement standard error": "displacement_error",
}
# Columns of files: how far schools differ, and people of the same school, in logits.
DIFFERENCES = (
    "intraclass correlation",
    "standard deviation of schools",
    "standard deviation within schools",
    "linking error",
)


class ReasonForm(forms.Form):
    because = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=500,
        help_text=gettext_lazy(
            "Kept under “Activity”, and shown to people who see this page."
        ),
        error_messages={"required": gettext_lazy("Say why you decide this.")},
    )


class DecisionForm(ReasonForm):
    # What the page offered: a page from before must not do the opposite.
    decision = forms.ChoiceField(
        choices=((RELEASE, RELEASE), (ANCHOR, ANCHOR)), widget=forms.HiddenInput
    )


@dataclass(frozen=True, slots=True)
class ItemLine:
    """An item of a measure, as it was calculated and as people decided about it."""

    name: str
    label: str
    # As `reports.scores.calibration.ItemResult`; empty if it was left out of the
    # measure, or is hidden because too few people have answered it.
    stored: Mapping[str, Any]
    is_hidden: bool
    release: ReleasedItem | None
    # Whether the stored calculation knew a release.
    was_released: bool

    @property
    def is_pending(self) -> bool:
        """Test that the scores do not know the last decision yet."""
        return bool(self.release) != self.was_released

    @property
    def has_drifted(self) -> bool:
        return bool(self.stored.get("has_drifted"))

    @property
    def decision(self) -> str:
        """Return what a person can decide, or ""."""
        if self.release:
            return ANCHOR
        return RELEASE if self.stored.get("is_anchored") else ""

    @property
    def state(self) -> str:
        if self.is_pending and self.release:
            return _("will be released")
        if self.is_pending:
            return _("will be anchored")
        if self.release:
            return _("released")
        if self.is_hidden:
            return HIDDEN
        if not self.stored:
            return _("left out")
        return _("anchored") if self.stored["is_anchored"] else _("free")

    @property
    def people(self) -> str:
        people = self.stored.get("people")
        return self._missing if people is None else format_count(people)

    @property
    def thresholds(self) -> list[str]:
        numbers = map(format_number, self.stored.get("thresholds", ()))
        return list(numbers) or [self._missing]

    @property
    def fits(self) -> list[tuple[str, str]]:
        """Return infit and outfit, each with what is wrong."""
        if not self.stored:
            return [(self._missing, "")] * 2
        values = (self.stored["infit"], self.stored["outfit"])
        return [(format_number(value), fit_words(value)) for value in values]

    @property
    def displacement(self) -> str:
        if not self.stored:
            return self._missing
        error = self.stored.get("displacement_error")
        logits = format_number(self.stored["displacement"])
        return logits if error is None else f"{logits} {_margin(error)}"

    @property
    def _missing(self) -> str:
        return HIDDEN if self.is_hidden else MISSING


@dataclass(frozen=True, slots=True)
class MeasureLine:
    name: str
    label: str
    # None is hidden.
    calibration: Calibration | None
    items: Sequence[ItemLine]
    problems: Sequence[Problem]
    # Name and version of the survey that people answered.
    survey: tuple[str, str]

    @property
    def sentence(self) -> str:
        if self.calibration is None or not self.calibration.items:
            return ""
        return reliability_sentence(self.calibration.reliability)

    @property
    def facts(self) -> list[tuple[str, str]]:
        calibration = self.calibration
        if calibration is None:
            return []
        differences = differences_of(calibration)
        return [
            (_("People"), format_count(calibration.people)),
            (_("Reliability"), format_number(calibration.reliability)),
            (_("Separation"), format_number(calibration.separation)),
            (_("ICC"), format_number(differences.intraclass_correlation)),
            (_("Deviation of schools"), format_number(differences.between)),
            (_("Deviation within schools"), format_number(differences.within)),
            (_("Linking error"), _margin(calibration.linking_error)),
        ]

    @property
    def benchmark_title(self) -> str:
        return title_of_benchmark(self.calibration) if self.calibration else ""

    @property
    def published_errors(self) -> str:
        return published_errors([self.calibration]) if self.calibration else ""

    @property
    def is_benchmark(self) -> bool:
        """Test that later waves are anchored to this calibration."""
        calibration = self.calibration
        return bool(
            calibration
            and calibration.scale_unit
            and not calibration.anchored_to_id
            and not calibration.imported_id
        )

    @property
    def benchmark(self) -> Administration | None:
        calibration = self.calibration
        return (
            calibration.anchored_to.administration
            if calibration and calibration.anchored_to
            else None
        )

    @property
    def spans(self) -> str:
        """Return the names of the grade spans that have a scale."""
        calibration = self.calibration
        spans = calibration.span_scales if calibration else {}
        return ", ".join(str(SPAN_NAMES[span]) for span in SPAN_NAMES if span in spans)


@dataclass(frozen=True)
class QualityPage:
    scope: ScoresScope
    # Why there is no quality; "" if there is some.
    reason: str
    measures: Sequence[MeasureLine]
    # Problems of the whole administration.
    problems: Sequence[Problem]
    may_decide: bool
    may_request_report: bool
    # The calculation that has not ended, or the last one.
    job: Job | None
    is_published: bool
    chosen: ChosenBenchmark | None
    imported: ImportedBenchmark | None
    # Whether the scores do not know the last decision about a benchmark.
    awaits_benchmark: bool
    # For those who may request a technical report, once there is one.
    effects: Effects | None

    @classmethod
    def of(cls, request: StaffRequest, pk: int) -> QualityPage:
        """Read the page; Http404 for users who do not see all responses.

        15 statements.
        """
        scope = ScoresScope.of(request, pk)
        if not scope.sees_quality:
            raise Http404
        administration = scope.administration
        content = measures_in_survey(administration)
        columns = measure_columns(administration, content)
        labels = {column.name: column.label for column in columns}
        scoring = getattr(administration, "scoring", None)
        job = (
            # From the primary: it may have been started a moment ago.
            Job.objects.using(DEFAULT_DB_ALIAS)
            .filter(kind__in=SCORE_JOBS, subject_id=administration.pk)
            .order_by("-pk")
            .first()
        )
        return cls(
            scope,
            no_scores(administration, columns[0] if columns else None),
            _measure_lines(administration, content, labels) if scoring else [],
            [Problem.from_json(problem) for problem in scoring.problems]
            if scoring
            else [],
            may_manage(request.permissions, administration),
            bool(scoring) and may_request(request.permissions),
            job,
            Publication.objects.filter(
                administration=administration,
                published_at__isnull=False,
                withdrawn_at=None,
            ).exists(),
            ChosenBenchmark.objects.using(DEFAULT_DB_ALIAS)
            .filter(administration=administration)
            .select_related("by")
            .first(),
            imported_benchmark(administration),
            administration in rounds_to_calculate(administration),
            Effects.from_json(scoring.effects)
            if scoring and scoring.effects and may_request(request.permissions)
            else None,
        )

    @property
    def administration(self) -> Administration:
        return self.scope.administration

    @property
    def effect_rows(self) -> list[tuple[str, list[str]]]:
        """Return the label of each measure that is shown, and its changes."""
        effects = self.effects
        return [
            (measure.label, effects.cells(measure.name))
            for measure in self.measures
            if effects and measure.calibration
        ]

    @property
    def is_calculating(self) -> bool:
        return bool(self.job and not self.job.is_over)

    @property
    def is_outdated(self) -> bool:
        """Test that a decision is in no calculation: it failed, or was cancelled."""
        return not self.is_calculating and (
            self.awaits_benchmark
            or any(
                item.is_pending for measure in self.measures for item in measure.items
            )
        )

    def lines_or_404(self, measure: str, item: str) -> tuple[MeasureLine, ItemLine]:
        for measure_line in self.measures:
            for line in measure_line.items:
                if (measure_line.name, line.name) == (measure, item):
                    return measure_line, line
        raise Http404


def _measure_lines(
    administration: Administration, content: Measures, labels: Mapping[str, str]
) -> list[MeasureLine]:
    """Return the measures that were calculated. 4 statements."""
    calibrations = visible_calibrations(administration, content)
    releases = {
        (released_item.measure, released_item.item): released_item
        for released_item in ReleasedItem.objects.using(DEFAULT_DB_ALIAS)
        .filter(administration=administration)
        .select_related("by")
    }
    surveys = {
        digest: (name, version)
        for digest, name, version in PublishedSurvey.objects.filter(
            digest__in={
                visible.survey_digest for visible in calibrations.values() if visible
            }
        ).values_list("digest", "survey__name", "survey__version")
    }
    published = published_survey(administration.published_id)
    language = language_to_read(published.languages)
    localizer = localizer_for(published.definition, language)
    questions = {
        name: localizer.plain(item.get("label"))
        for name, item in published.definition["items"].items()
    }
    lines = []
    for measure in content["measures"]:
        name = measure["name"]
        if name not in calibrations:
            continue
        label, calibration = labels[name], calibrations[name]
        if calibration is None:
            lines.append(MeasureLine(name, label, None, [], [], ("", "")))
            continue
        problems = [Problem.from_json(problem) for problem in calibration.problems]
        was_released = {
            problem.item for problem in problems if problem.kind == Kind.RELEASED
        }
        stored = {item["name"]: item for item in calibration.items}
        small = {
            key
            for key, item in stored.items()
            if item["people"] < administration.minimum_group
        }
        items = [
            ItemLine(
                key,
                questions.get(key) or key,
                {} if key in small else stored.get(key, {}),
                key in small,
                releases.get((name, key)),
                key in was_released,
            )
            for key in (item["name"] for item in measure["items"])
        ]
        problems = [problem for problem in problems if problem.item not in small]
        survey = surveys.get(calibration.survey_digest, ("", ""))
        lines.append(MeasureLine(name, label, calibration, items, problems, survey))
    return lines


def csv_rows(page: QualityPage) -> Iterator[Sequence[Cell]]:
    """Yield the header and a row for each item; one for a measure that is hidden."""
    shown = [item for measure in page.measures for item in measure.items]
    most = max((len(item.stored.get("thresholds", ())) for item in shown), default=0)
    header = (
        *("measure", "item", "question", "state", "drifted", "released because"),
        *("people of measure", "reliability", "separation", *DIFFERENCES),
        "anchored to",
        *("survey", "survey version", "software", "calculated at"),
        *("people with an answer", *FIGURES),
        *(f"threshold {n}" for n in range(1, most + 1)),
    )
    yield header
    for measure in page.measures:
        calibration = measure.calibration
        if calibration is None:
            yield [measure.name, *[HIDDEN] * (len(header) - 1)]
            continue
        of_measure: list[Cell] = [
            calibration.people,
            _rounded(calibration.reliability),
            _rounded(calibration.separation),
            *map(_rounded, school_figures(calibration)),
            measure.benchmark.name if measure.benchmark else "",
            *measure.survey,
            calibration.software,
            calibration.calculated_at.isoformat(timespec="seconds"),
        ]
        for item in measure.items:
            stored = item.stored
            figures: list[Cell] = [
                stored.get("people"),
                *(_rounded(stored.get(key)) for key in FIGURES.values()),
                *map(_rounded, stored.get("thresholds", ())),
            ]
            if item.is_hidden:
                figures = [HIDDEN] * (1 + len(FIGURES) + most)
            # Of the others, it is not tested.
            drifted = ""
            if stored.get("is_anchored"):
                drifted = "yes" if item.has_drifted else "no"
            because = item.release.because if item.release else ""
            yield [
                *(measure.name, item.name, item.label, item.state),
                *(HIDDEN if item.is_hidden else drifted, because),
                *of_measure,
                *figures,
            ]


def school_figures(calibration: Calibration) -> list[float | None]:
    """Return the figures of `DIFFERENCES`."""
    differences = differences_of(calibration)
    correlation = differences.intraclass_correlation
    within = differences.within
    return [correlation, differences.between, within, calibration.linking_error]


def _margin(error: float | None) -> str:
    return MISSING if error is None else f"±{format_number(CERTAIN * error)}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def format_count(number: int) -> str:
    return number_format(number, force_grouping=True)


def format_number(value: float | None) -> str:
    if value is None:
        return MISSING
    # Without a minus sign before 0.00.
    return number_format(round(value, 2) + 0.0, 2).replace("-", "−")
