"""Read what the technical report of an administration is made of.

Everything is of the release: its people, the calibrations of its scores, and the
figures that it shows of the whole state. Where a figure is hidden in the results, it
is hidden here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np
from django.utils.translation import gettext as _

from reports.answers.people import People
from reports.answers.texts import localizer_for
from reports.answers.versions import versions_of
from reports.models import Calibration, ResultsRollUp, Scoring
from reports.releases.levels import LEVELS, Place
from reports.releases.rollup import attributes_of, keeps_earlier_answers
from reports.results.visible import VisibleGroup, visible_groups
from reports.scores.quality import visible_calibrations
from reports.scores.scoring import read_answers
from reports.scores.visible import measures_in_survey
from reports.technical.careless import (
    Flags,
    fast_answers,
    statements_of,
    straight_lines,
)
from reports.technical.diagnostics import (
    LANGUAGE,
    GroupedPeople,
    MeasureDiagnostics,
    diagnose,
)
from reports.technical.estimates import Codes, Raked
from reports.technical.roster import RosterGroup, roster_groups, roster_weights
from survey.instrument.definitions.schema import MeasureDefinition, Measures
from survey.models import Administration
from survey.taking.published import published_survey
from survey.work.jobs import JobRefused, Progress

STATE: Place = (LEVELS.STATE.value, 0)


@dataclass(frozen=True)
class TechnicalSource:
    """Figures of the state, without what is hidden there."""

    administration: Administration
    content: Measures
    scoring: Scoring
    roll_up: ResultsRollUp
    # None is hidden.
    calibrations: Mapping[str, Calibration | None]
    diagnostics: Mapping[str, MeasureDiagnostics]
    everyone: VisibleGroup
    # Groups that the results show, by attribute and value.
    groups: Mapping[tuple[str, str], VisibleGroup]
    labels: Mapping[str, str]
    # Rule -> who is judged and flagged by it, in the order of the people.
    careless: Mapping[str, Flags]
    roster: Sequence[RosterGroup]
    # Weights of the people, and the attributes that they make like the roster.
    weights: tuple[Raked, Sequence[str]] | None
    # Of each person: the number of the school.
    schools: Codes

    @property
    def measures(self) -> list[MeasureDefinition]:
        return self.content["measures"]

    @property
    def all_flags(self) -> Flags:
        """Who is judged and flagged by any rule."""
        return reduce(or_, self.careless.values())

    def shown_items(self, calibration: Calibration) -> set[str]:
        """Return the items that enough people have answered."""
        return {
            item["name"]
            for item in calibration.items
            if item["people"] >= self.administration.minimum_group
        }


def read_source(administration: Administration, progress: Progress) -> TechnicalSource:
    """Read the release and diagnose its measures.

    Raises JobRefused without scores, while their people are others than those whose
    answers are there, and while the results of the state are hidden.
    """
    scoring = Scoring.objects.current().filter(pk=administration.pk).first()
    roll_up = ResultsRollUp.objects.filter(pk=administration.pk).first()
    everyone = visible_groups(administration, [STATE]).get(STATE)
    if scoring is None or roll_up is None or everyone is None:
        raise JobRefused(
            _(
                "There is no technical report, because there are no scores, or the"
                " results of all schools are hidden."
            )
        )
    content = measures_in_survey(administration)
    [version] = versions_of([administration]).values()
    progress.begin_step(_("Reading the responses."))
    answers = read_answers(administration, version, content)
    # Two reports would differ by the answers of a person who was deleted in between.
    if len(answers.people) != scoring.people or keeps_earlier_answers(administration):
        raise JobRefused(
            _(
                "Answers have changed since the scores were calculated. Release the"
                " results anew, and request the report again."
            )
        )
    groups, grouped = _visible_attributes(administration, answers.people)
    roster = roster_groups(
        administration, ["", *(people.attribute for people in grouped)]
    )
    calibrations = visible_calibrations(administration, content)
    progress.begin_step(_("Calculating the measures."), total=len(calibrations))
    diagnostics = {}
    for name, calibration in calibrations.items():
        if calibration and calibration.items:
            diagnostics[name] = diagnose(calibration, answers.answers, grouped)
        progress.advance()
    return TechnicalSource(
        administration,
        content,
        scoring,
        roll_up,
        calibrations,
        diagnostics,
        everyone,
        groups,
        _labels(administration),
        {
            "same answers": straight_lines(
                statements_of(version, content), answers.answers, len(answers.people)
            ),
            "fast answers": fast_answers(administration, answers.people),
        },
        roster,
        roster_weights(roster, grouped),
        np.unique(answers.people.schools, return_inverse=True)[1],
    )


def _visible_attributes(
    administration: Administration, people: People
) -> tuple[dict[tuple[str, str], VisibleGroup], list[GroupedPeople]]:
    """Return the groups that the results show, and the people of each attribute.

    Without the values of hidden groups. The results have no groups by language, of
    which no numbers are shown either. 1 statement for each group.
    """
    groups, by_attribute = {}, []
    for attribute in filter(None, attributes_of(administration)):
        grouped = GroupedPeople.of(attribute, people)
        for value in filter(None, grouped.values):
            group = visible_groups(administration, [STATE], attribute, value).get(STATE)
            if group:
                groups[attribute, value] = group
        shown = [
            value if (attribute, value) in groups else "" for value in grouped.values
        ]
        by_attribute.append(GroupedPeople(attribute, shown, grouped.of_person))
    return groups, [*by_attribute, GroupedPeople.of(LANGUAGE, people)]


def _labels(administration: Administration) -> dict[str, str]:
    """Return the questions by the names of their items, in the first language."""
    published = published_survey(administration.published_id)
    localizer = localizer_for(published.definition, published.languages[0])
    items: Sequence[str] = list(published.definition["items"])
    return {
        name: localizer.plain(published.definition["items"][name].get("label"))
        for name in items
    }
