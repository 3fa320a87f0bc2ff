"""Store invented results as an administration, so that the product publishes them.

Nothing here decides what is hidden: `hide_small_groups` does, and stores it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
from django.utils import timezone

from accounts.models import District, School
from provisioning.suppression_attack.hierarchies import Hierarchy
from reports.models import (
    CountedSchool,
    GradeRate,
    GroupResults,
    ResultsRollUp,
    SchoolRate,
)
from reports.results.counting import GRADE, packed
from reports.results.hiding import ResultTables, hide_small_groups, tables_of
from reports.results.layout import STATES, Column, CountedItem, Layout
from reports.results.visible import Place
from reports.suppression.tables import EVERYONE, Decision, Integers
from reports.thresholds import needed
from survey.models import Administration, PublishedSurvey, Role, Survey

LEVELS = GroupResults.Level
# Of an item, the people who are in none of its columns.
REST = "rest"
# How long ago an administration has closed, and the one before it in its school year.
CLOSED = timedelta(days=10)
AN_HOUR_BEFORE = CLOSED + timedelta(hours=1)


@dataclass(frozen=True)
class Stored:
    """A stored administration, and its tables as the product reads them."""

    administration: Administration
    hierarchy: Hierarchy
    decision: Decision
    # Of the positions in the hierarchy's tree and columns.
    places: Sequence[Place]
    groups: Sequence[tuple[str, str]]
    # Item -> what its categories count.
    categories: dict[str, list[Column]]

    @classmethod
    def of(cls, administration: Administration) -> Stored | None:
        """Read the stored tables of an administration; None without answers."""
        tables = tables_of(administration)
        if tables is None:
            return None
        items: dict[str, Integers] = {}
        categories: dict[str, list[Column]] = {}
        for name, counts in tables.items.items():
            columns = _columns_of(tables, name)
            # Everybody may know that an item is always applicable or reached.
            optional = [
                column.kind == "not applicable"
                or (column.value == REST and len(columns) > 2)
                for column in columns
            ]
            chosen = np.asarray(counts.any(axis=(0, 1)) | ~np.array(optional))
            items[name] = counts[:, :, chosen].astype(np.int64)
            categories[name] = [
                column for column, kept in zip(columns, chosen, strict=True) if kept
            ]
        minimum = administration.minimum_group
        return cls(
            administration,
            Hierarchy(
                *(tables.tree, tables.groups, items, minimum),
                precedent=tables.precedent,
            ),
            tables.decide(minimum),
            tables.arrays.places,
            tables.arrays.groups,
            categories,
        )


def _columns_of(tables: ResultTables, name: str) -> list[Column]:
    """Return the columns of a table, in the order of `categories_of`."""
    item, _, option = name.partition(" ")
    layout = tables.arrays.layout
    columns = [column for column in layout.columns if column.item == item]
    rest = Column(item, "answered", REST)
    if option:
        return [*(one for one in columns if one.value == option), rest]
    measured = next(one.measured for one in layout.items if one.name == item)
    values = [one for one in columns if one.kind == "value"]
    if measured in ("choice", "number") and values:
        states = [one for one in columns if one.kind in STATES[:2]]
        return [*states, *values, rest]
    return [*(one for one in columns if one.kind != "value"), rest]


def store(
    hierarchy: Hierarchy,
    published: PublishedSurvey,
    name: str,
    *,
    closed: timedelta = CLOSED,
    before: Stored | None = None,
) -> Stored:
    """Store a hierarchy as an administration with shared results, closed so long ago.

    With the schools of a wave before, if there is one.
    """
    now = timezone.now()
    administration = Administration.objects.create(
        name=name,
        published=published,
        role=Role.STUDENT,
        minimum_group=hierarchy.minimum,
        opens_at=now - closed - timedelta(days=10),
        closes_at=now - closed,
    )
    places = list(before.places) if before else _create_places(hierarchy, name)
    layout = _layout_of(hierarchy)
    ResultsRollUp.objects.create(
        administration=administration,
        as_of=now,
        written_at=now,
        layout=layout.as_json(),
        shared_at=now,
    )
    groups = _group_names(hierarchy)
    _store_results(administration, hierarchy, places, groups)
    _store_rates(administration, hierarchy, places, groups)
    hide_small_groups(administration)
    stored = Stored.of(administration)
    if stored is None:
        raise ValueError("Nobody has answered")
    kept = [places.index(place) for place in stored.places]
    columns = [groups.index(group) for group in stored.groups]
    came = {
        name: counts[np.ix_(kept, columns)] for name, counts in hierarchy.came.items()
    }
    measures = tuple(
        replace(one, people=one.people[kept], sums=one.sums[kept])
        for one in hierarchy.measures
    )
    return replace(
        stored, hierarchy=replace(stored.hierarchy, measures=measures, came=came)
    )


def published_survey(name: str = "attacked") -> PublishedSurvey:
    """Create an empty survey, because figures are read without its definition."""
    survey = Survey.objects.create(name=name, version="1")
    return PublishedSurvey.objects.create(
        digest=f"{name:0<64}", survey=survey, definition="{}"
    )


def _create_places(hierarchy: Hierarchy, name: str) -> list[Place]:
    parents = hierarchy.tree.parents.tolist()
    places: list[Place] = [(LEVELS.STATE.value, 0)]
    for place, parent in enumerate(parents[1:], 1):
        code = f"{name}-{place}"
        if parent == 0 and len(hierarchy.tree.children(place)):
            district = District.objects.create(code=code, name=code)
            places.append((LEVELS.DISTRICT.value, district.pk))
        else:
            school = School.objects.create(
                code=code, name=code, district_id=places[parent][1]
            )
            places.append((LEVELS.SCHOOL.value, school.pk))
    return places


def _group_names(hierarchy: Hierarchy) -> list[tuple[str, str]]:
    names = [("", "")]
    for number, columns in enumerate(hierarchy.groups.attributes):
        attribute = GRADE if number == 0 else f"subgroup {number}"
        names += [(attribute, f"{value:02}") for value in range(len(columns))]
    return names


def _layout_of(hierarchy: Hierarchy) -> Layout:
    """Return columns in which the last category counts skipped items."""
    items, columns = [], []
    for name, counts in hierarchy.items.items():
        options = tuple(str(value) for value in range(counts.shape[2] - 1))
        items.append(CountedItem(name, "choice", options))
        columns += [Column(name, kind) for kind in STATES]
        columns += [Column(name, "value", option) for option in options]
    attributes = [attribute for attribute, _ in _group_names(hierarchy) if attribute]
    return Layout(items, {}, columns, list(dict.fromkeys(attributes)))


def _store_results(
    administration: Administration,
    hierarchy: Hierarchy,
    places: Sequence[Place],
    groups: Sequence[tuple[str, str]],
) -> None:
    people = hierarchy.groups.people
    counts = np.concatenate(
        [
            np.concatenate(
                [
                    item[:, :, -1:],
                    np.zeros_like(item[:, :, :1]),
                    item[:, :, :-1].sum(axis=2, keepdims=True),
                    item[:, :, :-1],
                ],
                axis=2,
            )
            for item in hierarchy.items.values()
        ],
        axis=2,
    )
    finished = people if hierarchy.finished is None else hierarchy.finished
    GroupResults.objects.bulk_create(
        GroupResults(
            administration=administration,
            level=level,
            place_id=key,
            attribute=attribute,
            value=value,
            people=int(people[place, column]),
            finished=int(finished[place, column]),
            counts=packed(counts[place, column]),
        )
        for place, (level, key) in enumerate(places)
        for column, (attribute, value) in enumerate(groups)
        if people[place, column]
    )
    CountedSchool.objects.bulk_create(
        CountedSchool(
            administration=administration,
            school_id=places[leaf][1],
            district_id=places[hierarchy.tree.parents[leaf]][1],
            signature=0,
        )
        for leaf in hierarchy.tree.leaves
    )


def _store_rates(
    administration: Administration,
    hierarchy: Hierarchy,
    places: Sequence[Place],
    groups: Sequence[tuple[str, str]],
) -> None:
    """Store response rates in which everyone who started has also answered."""
    people, invited = hierarchy.groups.people, hierarchy.groups.invited
    finished = people if hierarchy.finished is None else hierarchy.finished
    schools, grades = [], []
    for leaf in hierarchy.tree.leaves.tolist():
        key = places[leaf][1]
        eligible = int(invited[leaf, EVERYONE])
        schools.append(
            SchoolRate(
                administration=administration,
                school_id=key,
                district_id=places[hierarchy.tree.parents[leaf]][1],
                eligible=eligible,
                at_opening=eligible,
                started=int(people[leaf, EVERYONE]),
                finished=int(finished[leaf, EVERYONE]),
                needed=needed(Role.STUDENT, eligible),
            )
        )
        for column, (attribute, value) in enumerate(groups):
            if attribute == GRADE and invited[leaf, column]:
                grades.append(
                    GradeRate(
                        administration=administration,
                        school_id=key,
                        grade=value,
                        eligible=int(invited[leaf, column]),
                        at_opening=int(invited[leaf, column]),
                        started=int(people[leaf, column]),
                        finished=int(finished[leaf, column]),
                    )
                )
    SchoolRate.objects.bulk_create(schools)
    GradeRate.objects.bulk_create(grades)
