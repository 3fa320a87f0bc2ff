"""Put together a school's report in one language, from what may be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.models import School
from accounts.permissions import Permissions
from reports.charts.highlights import Highlights, highlights_of
from reports.models import Calibration
from reports.rates.rate_lines import SchoolRateLine
from reports.rates.visible_rates import lines_of_schools
from reports.releases.levels import LEVELS, Place
from reports.results.access import capability_for, is_shared, results_for
from reports.results.menu import known_attributes, roster_groups
from reports.results.visible import VisibleGroup, visible_groups
from reports.school_report.gap_panels import (
    AttributeGaps,
    gaps_by_attribute,
    theme_names,
)
from reports.school_report.overview import Overview
from reports.school_report.parts import (
    GroupedParts,
    ReportPart,
    ReportParts,
    SurveyTexts,
)
from reports.scores.benchmark_titles import (
    published_errors,
    scale_unit,
    title_of_benchmark,
    with_benchmarks,
)
from reports.scores.scale import PEOPLE
from reports.scores.visible import (
    BenchmarkKey,
    Scores,
    benchmark_key,
    earlier_waves,
    scores_of_waves,
)
from reports.scores.visible_groups import GroupScores, visible_group_scores
from reports.scores.words import band_ranges
from survey.instrument.definitions.schema import Measures
from survey.models import Administration
from survey.taking import messages
from survey.taking.published import published_survey


@dataclass(frozen=True)
class SchoolReport:
    """What a school's page and file show. Without parts, `reason` says why."""

    administration: Administration
    school: School
    # The survey's language of labels, and the language of all other texts.
    language: str
    frame_language: str
    line: SchoolRateLine | None
    reason: str
    essentials: Sequence[tuple[ReportPart, Sequence[ReportPart]]] = ()
    # Measures without an essential.
    other_measures: Sequence[ReportPart] = ()
    # Titles of the administrations whose people have the mean 50, and whether
    # 20 points are a deviation of people instead of schools.
    benchmarks: Sequence[str] = ()
    is_of_people: bool = False
    # Whether it is compared with its grade span, unlike the places around.
    is_of_span: bool = False
    published_errors: str = ""
    measures: Measures | None = None
    # How its people answered, if that was read and is shown; then the same of the wave
    # before.
    answers: VisibleGroup | None = None
    last_time: tuple[Administration, VisibleGroup] | None = None
    # Its scores by the groups of each column of the roster.
    groups: Sequence[AttributeGaps] = ()

    @property
    def drawn(self) -> tuple[object, ...]:
        """Return all that the body of the page shows."""
        return (
            *(self.language, self.rate_sentence, self.reason),
            *(self.essentials, self.other_measures, self.benchmarks),
            *(self.is_of_people, self.is_of_span, self.published_errors),
            *(self.answers, self.groups),
            self.last_time and (self.last_time[0].title, self.last_time[1]),
        )

    @cached_property
    def highlights(self) -> Highlights | None:
        """Return the questions that stand out; None without answers that are shown."""
        if self.answers is None:
            return None
        before = self.last_time
        return highlights_of(
            published_survey(self.administration.published_id).definition,
            self.language,
            self.measures,
            {self.school.name: self.answers},
            {before[0].title: before[1]} if before else {},
            published_survey(before[0].published_id).definition if before else None,
        )

    @property
    def has_figures(self) -> bool:
        return bool(self.essentials or self.other_measures)

    @property
    def direction(self) -> str:
        return messages.direction(self.frame_language)

    @cached_property
    def overview(self) -> Overview:
        return Overview.of(self.essentials, self.other_measures)

    @cached_property
    def bands(self) -> list[tuple[int, str, str]]:
        return band_ranges()

    @property
    def rate_sentence(self) -> str:
        """The response rate, and the threshold that allows the report."""
        line = self.line
        if line is None or line.finished is None or not line.needed:
            return ""
        words = _(
            "%(finished)s of %(eligible)s finished (%(rate)s); a report needs"
            " %(needed)s."
        )
        return words % {
            "finished": f"{line.finished:,}",
            "eligible": line.eligible_words,
            "rate": line.rate_words,
            "needed": f"{line.needed:,}",
        }


@cache
def report_language_for(language: str) -> str:
    """Return the language of built-in texts: the survey's if known, or English."""
    base = language.lower().split("-")[0]
    # More than the console's.
    catalog = settings.LOCALE_PATHS[1] / base / "LC_MESSAGES" / "django.mo"
    is_known = base in dict(settings.LANGUAGES) or catalog.is_file()
    return base if is_known else "en"


def school_report(
    permissions: Permissions,
    administration: Administration,
    school: School,
    language: str,
) -> SchoolReport:
    """Read a school's report in a language of the survey. 11 statements at most.

    To be called with the language of `report_language_for` active. Raises KeyError
    for a language that the survey does not have.
    """
    reports = SchoolReports(permissions, administration, language)
    [report] = reports.of([school], with_questions=True)
    return report


class SchoolReports:
    """Reads the reports of many schools in one language.

    4 statements, and those of the published survey.

    To be made and used with the language of `report_language_for` active, or with
    `frame_language`.
    """

    def __init__(
        self,
        permissions: Permissions,
        administration: Administration,
        language: str,
        frame_language: str = "",
    ) -> None:
        self.permissions = permissions
        self.administration = administration
        self.language = language
        self.frame_language = frame_language or report_language_for(language)
        earlier = earlier_waves(administration)
        visible = results_for(permissions).filter(pk__in=[wave.pk for wave in earlier])
        # Where the user may see the results of each wave.
        self.seen = {
            wave.pk: permissions.places(capability_for(wave))
            for wave in visible.select_related("results_roll_up")
        }
        self.waves = [wave for wave in earlier if wave.pk in self.seen]
        self.texts = SurveyTexts(administration, language, self.frame_language)

    def leave_out_waves(self, district_id: int | None) -> None:
        """Leave out waves that are not seen in a whole district, or the state."""
        self.waves = [
            wave
            for wave in self.waves
            if self.seen[wave.pk].state
            or district_id is not None
            and self.seen[wave.pk].has_district(district_id)
        ]

    @property
    def shows_state(self) -> bool:
        places = self.permissions.places(capability_for(self.administration))
        return is_shared(self.administration) or places.state

    def of(
        self, schools: Sequence[School], *, with_questions: bool = False
    ) -> list[SchoolReport]:
        """Return a report for each school. 5 statements, and 1 the first time.

        With the questions that stand out and the scores by group 1 more, 1 if there is
        a wave before, and 3 if the roster has groups.
        """
        waves = [*self.waves, self.administration]
        lines = lines_of_schools(self.permissions, schools, waves)
        around = {school.pk: self._places(school) for school in schools}
        places = {
            place for named_places in around.values() for _name, place in named_places
        }
        scores = scores_of_waves(waves, places)
        reports = [
            self._report(school, lines[school.pk], around[school.pk], scores)
            for school in schools
        ]
        if not with_questions:
            return reports
        of_wave = scores[self.administration.pk]
        return self._with_groups(self._with_answers(reports, lines), of_wave)

    def _with_groups(
        self, reports: Sequence[SchoolReport], scores: Mapping[Place, Scores]
    ) -> list[SchoolReport]:
        """Add the scores by group to the reports with figures. At most 3 statements.

        Those of the page of scores by group, which tests the gaps of a column together.
        """
        attributes = known_attributes(self.administration)
        places = [_of_school(each.school) for each in reports if each.has_figures]
        if not attributes or not places:
            return list(reports)
        everyone = {place: scores[place] for place in places}
        groups = visible_group_scores(self.administration, self.texts.content, everyone)
        complete = []
        for report in reports:
            place = _of_school(report.school)
            of_school: Sequence[AttributeGaps] = ()
            if shown := groups.get(place):
                of_school = self._groups(attributes, everyone[place], shown)
            complete.append(replace(report, groups=of_school))
        return complete

    def _groups(
        self, attributes: Sequence[str], everyone: Scores, groups: GroupScores
    ) -> list[AttributeGaps]:
        content, on_roster = self.texts.content, roster_groups(self.administration)
        return [
            gaps
            for attribute in attributes
            for gaps in gaps_by_attribute(
                *(self.texts, theme_names(content), everyone, groups),
                *(on_roster, [attribute]),
            )
        ]

    def _with_answers(
        self,
        reports: Sequence[SchoolReport],
        lines: Mapping[int, Sequence[SchoolRateLine]],
    ) -> list[SchoolReport]:
        """Add how people answered to the reports with figures. At most 2 statements."""
        places = [_of_school(each.school) for each in reports if each.has_figures]
        answers = visible_groups(self.administration, places) if places else {}
        earlier: dict[Place, VisibleGroup | None] = {}
        if answers and self.waves:
            earlier = visible_groups(self.waves[-1], places)
        complete = []
        for report in reports:
            school = report.school
            place = _of_school(school)
            last_time = None
            if (before := earlier.get(place)) and self.waves[-1] in self._waves_of(
                school, lines[school.pk]
            ):
                last_time = self.waves[-1], before
            complete.append(
                replace(
                    report,
                    measures=self.texts.content,
                    answers=answers.get(place),
                    last_time=last_time,
                )
            )
        return complete

    def _waves_of(
        self, school: School, lines: Sequence[SchoolRateLine]
    ) -> list[Administration]:
        """Return the earlier waves of which the school has a report, as the user sees.

        The oldest first. No statement.
        """
        reached = {line.administration.pk for line in lines if line.is_reached}
        return [
            wave
            for wave in self.waves
            if self.seen[wave.pk].has_school(school) and wave.pk in reached
        ]

    def of_place(self, places: Sequence[tuple[str, Place]]) -> GroupedParts:
        """Return the parts of a district or the state, beside places around it.

        The caller names only places that the user may see. 4 statements.
        """
        (_name, place), *_around = places
        self.leave_out_waves(place[1] if place[0] == LEVELS.DISTRICT.value else None)
        waves = [*self.waves, self.administration]
        scores = scores_of_waves(waves, [place for _name, place in places])
        if place not in scores[self.administration.pk]:
            return [], []
        return ReportParts(
            self.administration, self.texts, places, waves, scores
        ).read()

    def _report(
        self,
        school: School,
        lines: Sequence[SchoolRateLine],
        places: Sequence[tuple[str, Place]],
        scores: Mapping[int, Mapping[Place, Scores]],
    ) -> SchoolReport:
        by_wave = {line.administration.pk: line for line in lines}
        line = by_wave.get(self.administration.pk)
        frame = self.frame_language
        about = (self.administration, school, self.language, frame, line)
        if line is None:
            return SchoolReport(*about, _("This school does not take part."))
        if not line.is_reached:
            words = _("There is no report for this school: %(words)s.")
            return SchoolReport(*about, words % {"words": line.words})
        school_scores = scores[self.administration.pk].get(_of_school(school))
        if not school_scores:
            return SchoolReport(*about, _("The scores have not been calculated yet."))
        if not any(school_scores.values()):
            return SchoolReport(
                *about,
                _(
                    "There is no report for this school: with so few answers it would"
                    " show what somebody answered, or would let it be calculated."
                ),
            )
        waves = [*self._waves_of(school, lines), self.administration]
        parts = ReportParts(self.administration, self.texts, places, waves, scores)
        essentials, other_measures = parts.read()
        keys = frozenset().union(
            *(score.benchmarks for score in school_scores.values() if score)
        )
        benchmarks = [
            (calibration, key.span)
            for key in keys
            if (calibration := self._benchmarks.get(key._replace(span="")))
        ]
        return SchoolReport(
            *about,
            "",
            essentials,
            other_measures,
            sorted({title_of_benchmark(*benchmark) for benchmark in benchmarks}),
            any(scale_unit(*benchmark) == PEOPLE for benchmark in benchmarks),
            any(span for _calibration, span in benchmarks),
            published_errors(calibration for calibration, _span in benchmarks),
        )

    def _places(self, school: School) -> list[tuple[str, Place]]:
        """Return the school, and the places around it that the user may see."""
        own_places = self.permissions.places(capability_for(self.administration))
        is_for_all = is_shared(self.administration)
        places = [(school.name, _of_school(school))]
        if is_for_all or own_places.has_district(school.district_id):
            district = (LEVELS.DISTRICT.value, school.district_id)
            places.append((school.district.name, district))
        if self.shows_state:
            places.append((_("All schools"), (LEVELS.STATE.value, 0)))
        return places

    @cached_property
    def _benchmarks(self) -> dict[BenchmarkKey, Calibration]:
        """Return a calibration by the benchmark of all schools that it has.

        1 statement.
        """
        return {
            benchmark_key(calibration): calibration
            for calibration in with_benchmarks(self.administration)
        }


def _of_school(school: School) -> Place:
    return LEVELS.SCHOOL.value, school.pk
