"""Read scores of groups for pages and files, without what is hidden.

Only scores that are shown are stored (`reports.suppression.scores`). They are hidden
as well where results hide the group since, in a school also where they hide an item of
the measure, and where the score of everyone at the place is hidden. A score of an
essential is calculated from those of its measures, and its error has the correlation
of the measures' errors that the scores of everyone at the place show: it tells nothing
more than they do. In larger places, people of a school are alike: errors of means and
of gaps are those by school, unless those of independent people are larger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from reports.models import GroupResults, ScoreRow
from reports.models.scores import FORMAT
from reports.releases.counting import GroupKey
from reports.releases.levels import LEVELS, Place
from reports.scores.school_errors import StoredErrors
from reports.scores.shrinkage import of_mean, shared_error
from reports.scores.visible import (
    Scores,
    VisibleScore,
    chosen_places,
    decided,
    essential_of,
    measures_in,
    scales_of,
)
from survey.instrument.definitions.schema import MeasureDefinition, Measures
from survey.models import Administration

# None is a score that is hidden in a group that shows others. Groups without any score
# are left out, whether they are hidden or have nobody.
GroupScores: TypeAlias = dict[GroupKey, Scores]


def visible_group_scores(
    administration: Administration,
    content: Measures,
    everyone: Mapping[Place, Scores],
) -> dict[Place, GroupScores]:
    """Return the scores of the groups of each place, by attribute and value.

    `everyone` are the visible scores of these places. 3 statements.
    """
    chosen = chosen_places(everyone)
    if chosen is None:
        return {}
    by_place: dict[Place, GroupScores] = {place: {} for place in everyone}
    scales = scales_of([administration])[administration.pk]
    results = GroupResults.objects.filter(chosen, administration=administration)
    key = ("level", "place_id", "attribute", "value")
    hidden_items = {
        tuple(cell): frozenset(hidden)
        for *cell, hidden in decided(results.exclude(attribute="")).values_list(
            *key, "hidden_items"
        )
    }
    rows = ScoreRow.objects.filter(
        chosen, administration=administration, administration__scoring__format=FORMAT
    ).exclude(attribute="")
    for level, place, attribute, value, span, stored, by_school in rows.values_list(
        *key, "span", "measures", "school_errors"
    ):
        hidden = hidden_items.get((level, place, attribute, value))
        of_everyone = everyone.get((level, place))
        if hidden is None or not of_everyone:
            continue
        scores: Scores = {}
        for measure in content["measures"]:
            name = measure["name"]
            if name not in scales or not of_everyone.get(name):
                continue
            items = {item["name"] for item in measure["items"]}
            is_shown = name in stored and (
                level != LEVELS.SCHOOL.value or items.isdisjoint(hidden)
            )
            scores[name] = None
            if is_shown:
                errors = SchoolErrors.of(by_school, name)
                score = scales[name].score(stored[name], span, errors.of_mean)
                scores[name] = score and score._replace(gap=errors.gap)
        scores |= _essentials(content, scores, of_everyone, by_school)
        if any(scores.values()):
            by_place[level, place][attribute, value] = scores
    return by_place


class SchoolErrors(NamedTuple):
    """The standard errors by school of a group's mean, and of its gap."""

    of_mean: float | None = None
    # With the number of groups.
    gap: tuple[float, int] | None = None

    @classmethod
    def of(cls, stored: StoredErrors | None, name: str) -> SchoolErrors:
        if not stored or name not in stored:
            return cls()
        mean, gap, groups = stored[name]
        return cls(mean, None if gap is None else (gap, int(groups or 0)))


def _essentials(
    content: Measures,
    scores: Scores,
    everyone: Scores,
    by_school: StoredErrors | None,
) -> Scores:
    """Return the essentials of a group, each None unless it shows all measures."""
    essentials: Scores = {}
    for essential in content["essentials"]:
        name = essential["name"]
        parts = measures_in(content, name)
        if not parts or not everyone.get(name):
            continue
        known = [
            (score, part["direction"] == "positive")
            for part in parts
            if (score := scores.get(part["name"]))
        ]
        essentials[name] = None
        if len(known) < len(parts):
            continue
        errors = [score.error_of_people for score, _is_positive in known]
        error = None
        if None not in errors:
            shared = _shared(parts, name, everyone)
            error = of_mean([each for each in errors if each is not None], shared)
        people = min(score.people or 0 for score, _is_positive in known)
        larger = SchoolErrors.of(by_school, name)
        total = essential_of(known, error, school_error=larger.of_mean)
        essentials[name] = total._replace(people=people, gap=larger.gap)
    return essentials


def _shared(parts: Sequence[MeasureDefinition], name: str, everyone: Scores) -> float:
    """Return the correlation of an essential's measures that a place shows."""
    scores = [everyone.get(part["name"]) for part in parts]
    errors = [score.error_of_people for score in scores if score]
    total = everyone.get(name)
    if total is None or None in errors or len(errors) < len(parts):
        return 1.0
    return shared_error(
        [each for each in errors if each is not None], total.error_of_people
    )


def people_deviation(content: Measures, name: str, everyone: Scores) -> float | None:
    """Return how far people of the same school are from its mean, in points.

    The standard deviation on a measure or an essential, by which gaps are called small
    or large; None if it is not known.
    """
    parts = measures_in(content, name)
    within = []
    for part in parts:
        score: VisibleScore | None = everyone.get(part["name"])
        if score is None or score.shrinkage is None or not score.shrinkage.within:
            return None
        within.append(score.shrinkage.within)
    if not within:
        return None
    return of_mean(within, _shared(parts, name, everyone))
