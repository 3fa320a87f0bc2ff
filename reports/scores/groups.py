"""Sum people's measures by place and group, and make the rows that are stored."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from reports.answers.people import People
from reports.models import ScoreRow
from reports.rasch.responses import Floats, Integers
from reports.releases.counting import value_of
from reports.releases.levels import LEVELS
from reports.scores.clusters import Clusters
from reports.scores.scale import (
    POINTS,
    Scale,
    Sums,
    covariance,
    essential_score,
    rounded,
    within_scale,
    without_few_pairs,
)
from reports.scores.school_errors import errors_of_everyone, errors_of_groups
from reports.scores.shrinkage import Shrinkage
from reports.suppression.scores import ShownScores
from reports.suppression.tables import Mask
from survey.instrument.definitions.schema import MeasureDefinition, Measures


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
        of_groups = [value_of(attribute, group) for group in people.groups]
        values, value = np.unique(
            np.array(of_groups, dtype=object), return_inverse=True
        )
        schools, school = np.unique(people.schools, return_inverse=True)
        keys = school * len(values) + value[people.group]
        return cls(attribute, values.tolist(), schools, keys.astype(np.int32))

    def sums(self, measures: Floats) -> Floats:
        """Return [people, sums, squares] × schools × values."""
        measured = np.isfinite(measures)
        known = np.where(measured, measures, 0)
        return self._add_up(measured, known, known**2)

    @property
    def value_of_person(self) -> Integers:
        return np.asarray(self.keys % len(self.values))

    def differing(self, measures: Floats) -> Integers:
        """Return how many people have another measure than most: schools × values."""
        measured = np.isfinite(measures)
        distinct, code = np.unique(measures[measured], return_inverse=True)
        size = len(self.schools) * len(self.values)
        cells, people = np.unique(
            self.keys[measured].astype(np.int64) * len(distinct) + code,
            return_counts=True,
        )
        most = np.zeros(size, dtype=np.int64)
        np.maximum.at(most, cells // max(len(distinct), 1), people)
        total = np.bincount(self.keys[measured], minlength=size)
        return np.asarray((total - most).reshape(len(self.schools), -1))

    def products(self, measures: Floats, other_measures: Floats) -> Floats:
        """Return [people, sums, sums of the others, products] × schools × values.

        Of the people who have both measures.
        """
        both = np.isfinite(measures) & np.isfinite(other_measures)
        known = np.where(both, measures, 0)
        other_known = np.where(both, other_measures, 0)
        return self._add_up(both, known, other_known, known * other_known)

    def _add_up(self, *numbers: Floats | Mask) -> Floats:
        shape = (len(self.schools), len(self.values))
        return np.array(
            [
                np.bincount(self.keys, weights=weights, minlength=shape[0] * shape[1])
                for weights in numbers
            ]
        ).reshape(len(numbers), *shape)


@dataclass(frozen=True)
class Patterns:
    """People by their school and their values of all attributes."""

    # Of each person.
    pattern: Integers
    # The first pattern of each school; the others of it follow.
    starts: Integers
    # [pattern, column], with everyone in column 0.
    members: Mask
    # The columns of each grouping but that of everyone.
    attributes: Sequence[tuple[int, ...]]

    @classmethod
    def of(cls, groupings: Sequence[Grouping]) -> Patterns:
        """Return the patterns of groupings, the first of which is that of everyone."""
        everyone, *of_attributes = groupings
        code = np.asarray(everyone.keys, dtype=np.int64)
        for grouping in of_attributes:
            code = code * len(grouping.values) + grouping.value_of_person
        _codes, first, pattern = np.unique(code, return_index=True, return_inverse=True)
        starts = np.searchsorted(everyone.keys[first], np.arange(len(everyone.schools)))
        members = [np.ones((len(first), 1), dtype=bool)]
        attributes, column = [], 1
        for grouping in of_attributes:
            values = np.arange(len(grouping.values))
            members.append(grouping.value_of_person[first][:, None] == values)
            attributes.append(tuple(range(column, column + len(values))))
            column += len(values)
        return cls(pattern, starts, np.concatenate(members, axis=1), attributes)

    def measured(self, measures: Floats) -> Integers:
        """Return how many people of each pattern have a measure."""
        people = self.pattern[np.isfinite(measures)]
        return np.bincount(people, minlength=len(self.members))


@dataclass(frozen=True)
class ScoredMeasure:
    """The definition of a measure, and its scale if it has scores."""

    definition: MeasureDefinition
    scale: Scale | None
    shrinkage: Shrinkage | None

    @property
    def items(self) -> frozenset[str]:
        return frozenset(item["name"] for item in self.definition["items"])

    def score(self, mean: float, people: int) -> int | None:
        if self.scale is None or self.shrinkage is None or not people:
            return None
        points = self.shrinkage.draw(self.scale.points_beyond(mean), people)
        return rounded(within_scale(points))


@dataclass(frozen=True)
class GroupSums:
    """What the scores of everyone, or of an attribute's groups, are calculated from."""

    grouping: Grouping
    # Of each measure, as `Grouping.sums`.
    measures: Floats
    # Of two measures of an essential, by their positions, as `Grouping.products`; none
    # of groups.
    products: Mapping[tuple[int, int], Floats] = field(default_factory=dict)

    def without_few_pairs(
        self, measures: Sequence[ScoredMeasure], minimum: int
    ) -> GroupSums:
        """Replace the products of few people, as `scale.without_few_pairs`."""
        sums = [Sums(*measure) for measure in self.measures]
        signs = [
            1 if measure.definition["direction"] == "positive" else -1
            for measure in measures
        ]
        products = {
            (first, second): without_few_pairs(
                product,
                sums[first],
                sums[second],
                minimum=minimum,
                sign=signs[first] * signs[second],
            )
            for (first, second), product in self.products.items()
        }
        return replace(self, products=products)

    def of_places(self, counted: Mask, places: Sequence[Integers]) -> GroupSums:
        """Add up the schools of each place; `counted` is measures × schools."""

        def add_up(numbers: Floats, schools: Mask) -> Floats:
            masked = np.where(schools[:, None], numbers, 0)
            return np.stack([masked[:, of].sum(axis=1) for of in places], axis=1)

        return GroupSums(
            self.grouping,
            np.array(
                [
                    add_up(measure, schools)
                    for measure, schools in zip(self.measures, counted, strict=True)
                ]
            ),
            {
                (first, second): add_up(product, counted[first] & counted[second])
                for (first, second), product in self.products.items()
            },
        )


def score_rows(
    group_sums: GroupSums,
    counted: Mask,
    districts: Mapping[int, int],
    measures: Sequence[ScoredMeasure],
    content: Measures,
    administration: int,
) -> Iterator[ScoreRow]:
    """Yield the rows of everyone at all places.

    `counted` are the schools [measure, school] of which larger places have the mean.
    """
    schools = group_sums.grouping.schools
    of_school = np.array([districts[key] for key in schools.tolist()], int)
    keys, district = np.unique(of_school, return_inverse=True)
    of_districts = [np.flatnonzero(district == number) for number in range(len(keys))]
    everywhere = [np.arange(len(schools))]
    of_places = {
        level: errors_of_everyone(clusters, group_sums, counted, measures, content)
        for level, clusters in _clusters(district, len(keys)).items()
    }
    levels = (
        (LEVELS.STATE, np.zeros(1, int), group_sums.of_places(counted, everywhere)),
        (LEVELS.DISTRICT, keys, group_sums.of_places(counted, of_districts)),
        (LEVELS.SCHOOL, schools, group_sums),
    )
    everybody = (
        group_sums.measures[:, 0].sum(axis=1, keepdims=True),
        np.stack(
            [group_sums.measures[:, 0, of].sum(axis=1) for of in of_districts], axis=1
        ),
        group_sums.measures[:, 0],
    )
    for (level, places, sums), everyone in zip(levels, everybody, strict=True):
        total = Sums(sums.measures[:, 0], sums.measures[:, 1], sums.measures[:, 2])
        people, means, errors = total.people, total.means, total.errors
        of_essentials = _essential_errors(content, measures, total, sums.products)
        for place, value in np.argwhere(everyone.any(axis=0)).tolist():
            # Lists, because reading single numbers from arrays takes ten times as long.
            figures = zip(
                measures,
                people[:, place, value].tolist(),
                means[:, place, value].tolist(),
                errors[:, place, value].tolist(),
                everyone[:, place, value].tolist(),
                strict=True,
            )
            stored = _stored_measures(figures)
            essentials = _essentials(content, stored)
            yield ScoreRow(
                administration_id=administration,
                level=level,
                place_id=int(places[place]),
                attribute=group_sums.grouping.attribute,
                value=group_sums.grouping.values[value],
                measures=stored,
                essentials=essentials,
                essential_errors={
                    name: _stored(float(of_essentials[name][place, value]))
                    for name in essentials
                },
                school_errors=of_places[level][place] if level in of_places else None,
            )


def _clusters(district: Integers, districts: int) -> dict[str, Clusters]:
    """Return the places of schools at the levels above them."""
    return {
        LEVELS.STATE: Clusters(np.zeros_like(district), 1),
        LEVELS.DISTRICT: Clusters(district, districts),
    }


def group_rows(
    sums: GroupSums,
    shown: ShownScores,
    number: int,
    columns: Sequence[int],
    districts: Mapping[int, int],
    measures: Sequence[ScoredMeasure],
    content: Measures,
    administration: int,
) -> Iterator[ScoreRow]:
    """Yield the rows of one attribute's groups, with nothing that is hidden.

    `number` is that of the attribute, and `columns` are those of its values.
    """
    schools = sums.grouping.schools
    of_school = np.array([districts[key] for key in schools.tolist()], int)
    keys, district = np.unique(of_school, return_inverse=True)
    of_districts = [np.flatnonzero(district == place) for place in range(len(keys))]
    levels = [
        (LEVELS.STATE, np.zeros(1, int), shown.state, [np.arange(len(schools))]),
        (LEVELS.DISTRICT, keys, shown.districts, of_districts),
    ]
    of_schools = shown.schools[:, list(columns)].transpose(2, 0, 1)
    clusters = _clusters(district, len(keys))
    for level, places, decided, parts in levels:
        counted = decided[number].counted
        of_places = sums.of_places(counted, parts)
        errors = errors_of_groups(
            *(clusters[level], sums, counted, of_schools, decided[number].shown),
            *(measures, content),
        )
        cells = decided[number].shown[:, :, None]
        for row in _rows_of_cells(of_places, cells, places, measures):
            row.level, row.administration_id = level, administration
            place = int(np.searchsorted(places, row.place_id))
            value = sums.grouping.values.index(row.value)
            row.school_errors = errors.get((place, value))
            yield row
    cells = of_schools
    for row in _rows_of_cells(sums, cells, schools, measures):
        row.level, row.administration_id = LEVELS.SCHOOL, administration
        yield row


def _rows_of_cells(
    sums: GroupSums, shown: Mask, places: Integers, measures: Sequence[ScoredMeasure]
) -> Iterator[ScoreRow]:
    """Yield the rows of groups at one level; `shown` are [measure, place, value]."""
    total = Sums(*sums.measures.transpose(1, 0, 2, 3))
    shown = shown & (total.people > 0)
    means, errors = total.means, total.errors
    for place, value in np.argwhere(shown.any(axis=0)).tolist():
        stored: dict[str, list[float | None]] = {}
        for each in np.flatnonzero(shown[:, place, value]).tolist():
            people, mean = (
                int(total.people[each, place, value]),
                means[each, place, value],
            )
            stored[measures[each].definition["name"]] = [
                people,
                _stored(float(mean)),
                _stored(float(errors[each, place, value])),
                measures[each].score(float(mean), people),
            ]
        yield ScoreRow(
            place_id=int(places[place]),
            attribute=sums.grouping.attribute,
            value=sums.grouping.values[value],
            measures=stored,
        )


def _stored_measures(
    figures: Iterable[tuple[ScoredMeasure, float, float, float, float]],
) -> dict[str, list[float | None]]:
    """Return a row's `measures`."""
    stored: dict[str, list[float | None]] = {}
    for measure, people, mean, error, measured in figures:
        if not measured:
            continue
        name, count = measure.definition["name"], int(people)
        score = measure.score(mean, count)
        stored[name] = [count, _stored(mean), _stored(error), score]
    return stored


def _stored(number: float) -> float | None:
    return None if math.isnan(number) else round(number, 4)


def _essential_errors(
    content: Measures,
    measures: Sequence[ScoredMeasure],
    total: Sums,
    products: Mapping[tuple[int, int], Floats],
) -> dict[str, Floats]:
    """Return the standard errors of essentials in points, [place, value].

    NaN where a measure has fewer than two people.
    """
    errors, by_essential = total.errors, {}
    for essential in content["essentials"]:
        mine = [
            (number, measure.definition["direction"], measure.scale)
            for number, measure in enumerate(measures)
            if measure.definition["essential"] == essential["name"]
        ]
        weights = {
            number: (1 if direction == "positive" else -1)
            * (POINTS / scale.deviation / len(mine))
            for number, direction, scale in mine
            if scale
        }
        if not weights or len(weights) < len(mine):
            continue
        variance = np.zeros(errors.shape[1:])
        for first in weights:
            variance += np.square(weights[first] * errors[first])
            for second in (second for second in weights if second > first):
                shared = covariance(total, first, second, products[first, second])
                variance += 2 * weights[first] * weights[second] * shared
        by_essential[essential["name"]] = np.sqrt(np.maximum(variance, 0))
    return by_essential


def _essentials(
    content: Measures, measures: Mapping[str, Sequence[float | None]]
) -> dict[str, int]:
    """Return the scores of the essentials of which all measures have one.

    They are the means of scores that the row shows as well, and tell nothing more.
    """
    by_essential = {}
    for essential in content["essentials"]:
        scores = []
        for measure in content["measures"]:
            if measure["essential"] == essential["name"]:
                *_others, score = measures.get(measure["name"]) or [None]
                scores.append((score, measure["direction"] == "positive"))
        known = [(int(score), way) for score, way in scores if score is not None]
        if known and len(known) == len(scores):
            by_essential[essential["name"]] = essential_score(known)
    return by_essential
