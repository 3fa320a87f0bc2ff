"""Sum people's measures by place and group, and make the rows that are stored."""

from __future__ import annotations

import math
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
            # Lists, because reading single numbers from arrays takes ten times as long.
            figures = {
                measure.definition["name"]: (measure.scale, int(count), mean, error)
                for measure, count, mean, error in zip(
                    measures,
                    people[:, place, value].tolist(),
                    means[:, place, value].tolist(),
                    errors[:, place, value].tolist(),
                    strict=True,
                )
                if count
            }
            points = {
                name: scale.points(mean)
                for name, (scale, _, mean, _) in figures.items()
                if scale
            }
            yield ScoreRow(
                administration_id=administration,
                level=level,
                place_id=int(places[place]),
                attribute=grouping.attribute,
                value=grouping.values[value],
                measures={
                    name: [
                        count,
                        round(mean, 4),
                        None if math.isnan(error) else round(error, 4),
                        rounded(points[name]) if name in points else None,
                    ]
                    for name, (_, count, mean, error) in figures.items()
                },
                essentials=_essentials(content, points),
            )


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
