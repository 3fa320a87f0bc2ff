"""Sum people's measures by place and group, and make the rows that are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.models import GroupResults, ScoreRow
from reports.rasch.responses import Floats, Integers
from reports.results.counting import GRADE
from reports.results.people import Group, People
from reports.scores.scale import Scale, Sums, essential_points, rounded
from survey.definitions.schema import MeasureDefinition, Measures

LEVELS = GroupResults.Level


@dataclass(frozen=True)
class Grouping:
    """The schools of people, and their values of one attribute.

    The attribute "" has the value "" for everyone.
    """

    attribute: str
    values: Sequence[str]
    schools: Integers
    # Of each person: number of the school, times number of values, plus the value.
    keys: Integers

    @classmethod
    def of(cls, attribute: str, people: People) -> Grouping:
        of_groups = [_value_of(attribute, group) for group in people.groups]
        values, value = np.unique(
            np.array(of_groups, dtype=object), return_inverse=True
        )
        schools, school = np.unique(people.schools, return_inverse=True)
        keys = school * len(values) + value[people.group]
        return cls(attribute, values.tolist(), schools, keys.astype(np.int32))

    def sums(self, measures: Floats) -> Floats:
        """Return [people, sums, squares] × schools × values."""
        shape = (len(self.schools), len(self.values))
        measured = np.isfinite(measures)
        known = np.where(measured, measures, 0)
        return np.array(
            [
                np.bincount(self.keys, weights=weights, minlength=shape[0] * shape[1])
                for weights in (measured, known, known**2)
            ]
        ).reshape(3, *shape)


def _value_of(attribute: str, group: Group) -> str:
    if attribute == GRADE:
        return group.grade
    return str(group.attributes.get(attribute, ""))


@dataclass(frozen=True)
class ScoredMeasure:
    """The definition of a measure, and its scale if it has scores."""

    definition: MeasureDefinition
    scale: Scale | None


def score_rows(
    grouping: Grouping,
    sums: Floats,
    districts: Mapping[int, int],
    measures: Sequence[ScoredMeasure],
    content: Measures,
    administration: int,
) -> Iterator[ScoreRow]:
    """Yield the rows of all places; `sums` are those of all measures."""
    of_school = np.array([districts[key] for key in grouping.schools.tolist()], int)
    keys, district = np.unique(of_school, return_inverse=True)
    of_districts = np.zeros((*sums.shape[:2], len(keys), sums.shape[3]))
    for school, number in enumerate(district.tolist()):
        of_districts[:, :, number] += sums[:, :, school]
    levels = (
        (LEVELS.STATE, np.zeros(1, int), sums.sum(axis=2, keepdims=True)),
        (LEVELS.DISTRICT, keys, of_districts),
        (LEVELS.SCHOOL, grouping.schools, sums),
    )
    for level, places, found in levels:
        total = Sums(found[:, 0], found[:, 1], found[:, 2])
        people, means, errors = total.people, total.means, total.errors
        for place, value in np.argwhere(people.any(axis=0)).tolist():
            points = {
                measure.definition["name"]: measure.scale.points(means[n, place, value])
                for n, measure in enumerate(measures)
                if measure.scale and people[n, place, value]
            }
            yield ScoreRow(
                administration_id=administration,
                level=level,
                place_id=int(places[place]),
                attribute=grouping.attribute,
                value=grouping.values[value],
                measures={
                    name: [
                        int(people[n, place, value]),
                        round(float(means[n, place, value]), 4),
                        _rounded_error(errors[n, place, value]),
                        rounded(points[name]) if name in points else None,
                    ]
                    for n, measure in enumerate(measures)
                    if people[n, place, value]
                    for name in (measure.definition["name"],)
                },
                essentials=_essentials(content, points),
            )


def _rounded_error(error: float) -> float | None:
    return round(float(error), 4) if np.isfinite(error) else None


def _essentials(content: Measures, points: Mapping[str, float]) -> dict[str, int]:
    """Return the scores of the essentials of which all measures have one."""
    found = {}
    for essential in content["essentials"]:
        mine = [
            measure
            for measure in content["measures"]
            if measure["essential"] == essential["name"]
        ]
        if mine and all(measure["name"] in points for measure in mine):
            found[essential["name"]] = rounded(
                essential_points(
                    [
                        (points[measure["name"]], measure["direction"] == "positive")
                        for measure in mine
                    ]
                )
            )
    return found
