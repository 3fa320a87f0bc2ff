"""Diagnose the measures of a release with the thresholds that their scores have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.answers.item_codes import ItemCodes
from reports.answers.people import People
from reports.models import Calibration
from reports.rasch import (
    PersonMeasures,
    ResponseTable,
    measure_people,
    separation,
)
from reports.rasch.category_diagnostics import CategoryDiagnostics, category_diagnostics
from reports.rasch.dependence import (
    Contrast,
    LocalDependence,
    first_contrast,
    local_dependence,
)
from reports.rasch.dif import DifferentialFunctioning, compare_groups
from reports.rasch.responses import Floats, Integers
from reports.releases.counting import value_of
from reports.scores.estimation import FEWEST_ITEMS
from reports.scores.joining import categories_of, enough_answers, table_of

# With fewer people of a group, differences of half a logit are chance (Linacre 1994).
FEWEST_COMPARED = 100
LANGUAGE = "language"


@dataclass(frozen=True)
class GroupedPeople:
    """The people of a release by one attribute of the roster."""

    attribute: str
    values: Sequence[str]
    # Of each person: the position of their value.
    of_person: NDArray[np.intp]

    @classmethod
    def of(cls, attribute: str, people: People) -> GroupedPeople:
        of_groups = [
            group.language if attribute == LANGUAGE else value_of(attribute, group)
            for group in people.groups
        ]
        values, value = np.unique(
            np.array(of_groups, dtype=object), return_inverse=True
        )
        return cls(attribute, values.tolist(), value[people.group])


@dataclass(frozen=True)
class Comparison:
    """Items of a measure in a focal group, beside the largest group."""

    attribute: str
    reference: str
    focal: str
    items: DifferentialFunctioning


@dataclass(frozen=True)
class MeasureDiagnostics:
    """What a stored calibration does not say of its items.

    All sequences are in the order of `items`, which are those of the calibration.
    """

    items: Sequence[Mapping[str, Any]]
    categories: Sequence[CategoryDiagnostics]
    dependence: LocalDependence
    contrast: Contrast | None
    comparisons: Sequence[Comparison]
    # Of each person of the release; NaN without a measure.
    measured: Floats
    # Of a table of these people, for other people of it.
    table: ResponseTable
    row: Integers
    measures: PersonMeasures

    def reliability(self, people: NDArray[np.bool_]) -> float:
        """Return the reliability of the measures of some people."""
        counts = np.bincount(self.row[people], minlength=len(self.table.people))
        some = ResponseTable(self.table.categories, counts)
        judged = enough_answers(self.table, FEWEST_ITEMS)
        return separation(some.rows(judged), self.measures.rows(judged)).reliability


def diagnose(
    calibration: Calibration,
    answers: Mapping[str, ItemCodes],
    attributes: Sequence[GroupedPeople],
) -> MeasureDiagnostics:
    """Return the diagnostics of one measure that has items.

    `attributes` have the groups that may be compared; those with too few people who
    answered are left out here. As in the scores, people with one answer tell nothing of
    its items, and those with fewer than the setting have no measure.
    """
    items = calibration.items
    table, row = table_of(
        [categories_of(item, answers[item["name"]]) for item in items]
    )
    thresholds = [np.array(item["thresholds"]) for item in items]
    measures = measure_people(table, thresholds)
    judged = enough_answers(table, FEWEST_ITEMS)
    of_judged = table.rows(judged), thresholds, measures.rows(judged)
    return MeasureDiagnostics(
        items,
        category_diagnostics(*of_judged),
        local_dependence(*of_judged),
        first_contrast(*of_judged),
        [
            comparison
            for grouped in attributes
            for comparison in _comparisons(table, row, thresholds, grouped)
        ],
        np.where(enough_answers(table), measures.wle, np.nan)[row],
        table,
        row,
        measures,
    )


def _comparisons(
    table: ResponseTable,
    row: Integers,
    thresholds: Sequence[Floats],
    grouped: GroupedPeople,
) -> list[Comparison]:
    """Compare each group with the largest one."""
    size = len(grouped.values)
    people = np.bincount(
        row * size + grouped.of_person, minlength=len(table.people) * size
    ).reshape(len(table.people), size)
    have_answered = table.answered.any(axis=1) @ people
    groups = [
        place
        for place in np.argsort(-have_answered, kind="stable").tolist()
        if grouped.values[place] and have_answered[place] >= FEWEST_COMPARED
    ]

    def table_of_group(place: int) -> ResponseTable:
        rows = people[:, place] > 0
        return ResponseTable(table.categories[rows], people[rows, place])

    if not groups:
        return []
    reference = table_of_group(groups[0])
    return [
        Comparison(
            grouped.attribute,
            grouped.values[groups[0]],
            grouped.values[place],
            compare_groups(reference, table_of_group(place), thresholds),
        )
        for place in sorted(groups[1:])
    ]
