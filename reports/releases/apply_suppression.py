"""Decide what is hidden in an administration's results, and store it with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from django.db import transaction
from django.db.models import F

from reports.models import (
    CountedSchool,
    GradeRate,
    GroupResults,
    ResultsRollUp,
    SchoolRate,
)
from reports.releases.counting import GRADE, Counts, GroupKey, packed, value_of
from reports.releases.earlier_waves import GONE, earlier_suppression
from reports.releases.frozen_people import SchoolPeople
from reports.releases.frozen_people import unpacked as unpacked_people
from reports.releases.levels import LEVELS
from reports.releases.result_arrays import ResultArrays, result_arrays
from reports.suppression.dependent_groups import (
    Memberships,
    dependent_groups,
)
from reports.suppression.rates import hidden_grades, sizes_for_hiding
from reports.suppression.repeating import repeated_attributes
from reports.suppression.results import decide
from reports.suppression.tables import (
    UNKNOWN,
    Decision,
    EarlierSuppression,
    GroupCounts,
    Integers,
    Mask,
    PlaceTree,
    ReleasedTables,
)
from survey.models import Administration

EVERYONE: GroupKey = ("", "")
SCHOOL = LEVELS.SCHOOL.value
DECIDED = (
    *("is_hidden", "hidden_items"),
    *("published_people", "published_finished", "published_counts"),
)


def hide_small_groups(administration: Administration) -> None:
    """Store what is hidden; until then, pages show nothing of newer figures."""
    tables = tables_of(administration)
    minimum = administration.minimum_group
    if tables is None:
        # Nobody has answered, or nobody of them is left.
        ResultsRollUp.objects.filter(pk=administration.pk).update(
            hidden_as_of=F("as_of"),
            undivided=[],
            summed=[],
            repeating=[],
            minimum_group=minimum,
        )
        return
    arrays = tables.arrays
    released = tables.released(minimum)
    decision = decide(released, tables.items, tables.answered)
    repeating = tables.repeating(released)
    published = _published(tables, decision)
    with transaction.atomic():
        roll_up = ResultsRollUp.objects.select_for_update().filter(
            administration=administration, as_of=arrays.as_of
        )
        if roll_up.exists():
            _store(administration, arrays, decision, published)
            roll_up.update(
                hidden_as_of=arrays.as_of,
                undivided=tables.undivided_by(decision),
                summed=tables.summed_by(decision),
                repeating=repeating,
                minimum_group=minimum,
            )


@dataclass(frozen=True)
class ResultTables:
    """Everything that is published together of an administration."""

    arrays: ResultArrays
    tree: PlaceTree
    groups: GroupCounts
    # [place, group, category] of each item, and of each option of a multiple choice.
    items: Mapping[str, Counts]
    earlier: EarlierSuppression
    # Who answered each item: [place, group].
    answered: Mapping[str, Counts]
    # By place of the schools.
    memberships: Mapping[int, Memberships]

    def released(self, minimum: int) -> ReleasedTables:
        """Return the tables with the groups that are hidden for overlapping ones."""
        tables = ReleasedTables(self.tree, self.groups, minimum, self.earlier)
        dependent = dependent_groups(tables, self.memberships, list(self.answered))
        return replace(tables, dependent=dependent)

    def repeating(self, released: ReleasedTables) -> list[tuple[str, str]]:
        """Return attributes that no school shows, and which one each repeats.

        "" if it only repeats several others together.
        """
        attributes = released.dependent.repeating if released.dependent else []
        repeated = repeated_attributes(released, self.memberships, attributes)
        return [
            (
                self._attribute(number),
                self._attribute(repeated[number]) if number in repeated else "",
            )
            for number in attributes
        ]

    def undivided_by(self, decision: Decision) -> list[tuple[str, int, str]]:
        """Return level, key and attribute of the places that are undivided."""
        return [
            (*self.arrays.places[place], self._attribute(number))
            for place, number in np.argwhere(decision.undivided).tolist()
        ]

    def summed_by(self, decision: Decision) -> list[tuple[str, int, str, list[int]]]:
        """Return the keys of the schools in shown figures of undivided places.

        0 stands for schools that are gone.
        """
        places = self.arrays.places
        return [
            (
                *(*places[place], self._attribute(number)),
                sorted(
                    0 if school == GONE else places[school][1] for school in schools
                ),
            )
            for (place, number), schools in sorted(decision.summed.items())
        ]

    def _attribute(self, number: int) -> str:
        attribute, _ = self.arrays.groups[self.groups.attributes[number][0]]
        return attribute


def tables_of(administration: Administration) -> ResultTables | None:
    """Return the tables to decide about, or None if nobody has answered."""
    schools = list(
        CountedSchool.objects.filter(administration=administration).values_list(
            "school_id", "district_id", "people"
        )
    )
    districts = {school: district for school, district, _ in schools}
    arrays = result_arrays(administration, districts)
    if arrays is None or not arrays.places:
        return None
    # Where everybody has the same value, or none, it tells about nobody.
    values = Counter(attribute for attribute, _ in arrays.groups)
    groups = sorted(
        (group for group in arrays.groups if group == EVERYONE or values[group[0]] > 1),
        key=lambda group: (group != EVERYONE, group),
    )
    arrays = arrays.of_groups(groups)
    tree = PlaceTree(np.array(arrays.parents))
    counts = _group_counts(administration, arrays, tree)
    place_of = {place: number for number, place in enumerate(arrays.places)}
    return ResultTables(
        arrays,
        tree,
        counts,
        categories_of(arrays),
        earlier_suppression(administration, arrays, counts),
        {
            item.name: arrays.counts[:, :, _answered_column(arrays, item.name)]
            for item in arrays.layout.items
        },
        {
            place_of[SCHOOL, school]: memberships_of(
                unpacked_people(people, school, None), arrays
            )
            for school, _, people in schools
            if people and (SCHOOL, school) in place_of
        },
    )


def _answered_column(arrays: ResultArrays, item: str) -> int:
    return next(
        number
        for number in arrays.columns_of(item)
        if arrays.layout.columns[number].kind == "answered"
    )


def memberships_of(people: SchoolPeople, arrays: ResultArrays) -> Memberships:
    """Return who is in which groups of a school, and who has answered which item."""
    columns = {group: column for column, group in enumerate(arrays.groups)}
    attributes = {attribute for attribute, _ in arrays.groups}
    # The pattern of each of the school's groups.
    known: dict[tuple[int, ...], int] = {}
    pattern_of = [
        known.setdefault(
            tuple(
                columns[attribute, value_of(attribute, group)]
                for attribute in attributes
            ),
            len(known),
        )
        for group in people.groups
    ]
    members = np.zeros((len(known), len(columns)), dtype=bool)
    for pattern, of_pattern in enumerate(known):
        members[pattern, list(of_pattern)] = True
    of_person = np.array(pattern_of, dtype=np.int64)[people.group]
    number = np.bincount(of_person, minlength=len(known))
    items = [item.name for item in arrays.layout.items]
    answered = np.repeat(number[:, None], len(items), axis=1)
    if people.answered is not None and people.items:
        bits = np.unpackbits(people.answered, axis=1, count=len(people.items))
        in_pattern = np.arange(len(known))[:, None] == of_person
        counts = in_pattern.astype(np.float32) @ bits.astype(np.float32)
        for position, name in enumerate(items):
            if name in people.items:
                column = counts[:, people.items.index(name)]
                answered[:, position] = column.astype(np.int64)
    return Memberships(members, number, answered)


def categories_of(arrays: ResultArrays) -> dict[str, Counts]:
    """Return counts [place, group, category] that add up to the people of a group.

    Several options of a multiple choice can be chosen, so each of them is a table
    of its own, named "item option".
    """
    tables: dict[str, Counts] = {}
    for item in arrays.layout.items:
        numbers = arrays.columns_of(item.name)
        columns = [arrays.layout.columns[number] for number in numbers]
        states = [n for n, c in zip(numbers, columns, strict=True) if c.kind != "value"]
        values = [n for n, c in zip(numbers, columns, strict=True) if c.kind == "value"]
        if item.measured in ("choice", "number") and values:
            answered = [
                n for n in states if arrays.layout.columns[n].kind != "answered"
            ]
            tables[item.name] = _with_rest(arrays, [*answered, *values])
            continue
        tables[item.name] = _with_rest(arrays, states)
        for number in values:
            option = arrays.layout.columns[number].value
            tables[f"{item.name} {option}"] = _with_rest(arrays, [number])
    return tables


def _with_rest(arrays: ResultArrays, columns: list[int]) -> Counts:
    counts = arrays.counts[:, :, columns]
    rest = arrays.people - counts.sum(axis=2)
    return np.concatenate([counts, rest[:, :, None]], axis=2)


def _group_counts(
    administration: Administration, arrays: ResultArrays, tree: PlaceTree
) -> GroupCounts:
    """Return the people of each group, and what the rates pages tell about them."""
    number_of = {place: number for number, place in enumerate(arrays.places)}
    column_of = {group: column for column, group in enumerate(arrays.groups)}
    invited = np.full(arrays.people.shape, UNKNOWN, np.int64)
    school = str(LEVELS.SCHOOL)
    rates = SchoolRate.objects.filter(administration=administration)
    for key, eligible in rates.values_list("school", "eligible"):
        place = number_of.get((school, key))
        if place is not None:
            invited[place, 0] = eligible
    without_rate = np.zeros(arrays.people.shape, dtype=bool)
    grades: defaultdict[int, list[GradeRate]] = defaultdict(list)
    rates_of_grades = GradeRate.objects.filter(administration=administration)
    for rate in rates_of_grades.order_by("grade"):
        grades[rate.school_id].append(rate)
    for key, of_school in grades.items():
        place = number_of.get((school, key))
        if place is None:
            continue
        hidden = hidden_grades(
            sizes_for_hiding([(rate.eligible, rate.at_opening) for rate in of_school])
        )
        if administration.coordinators_see_finished:
            hidden = set()
        for number, rate in enumerate(of_school):
            column = column_of.get((GRADE, rate.grade))
            if column is not None:
                invited[place, column] = rate.eligible
                without_rate[place, column] = number in hidden
    for place in range(len(arrays.places) - 1, -1, -1):
        below = invited[tree.children(place)]
        if len(below):
            invited[place] = np.where(
                (below < 0).any(axis=0), UNKNOWN, below.sum(axis=0)
            )
    columns: dict[str, list[int]] = {}
    for column, (attribute, _) in enumerate(arrays.groups):
        if attribute:
            columns.setdefault(attribute, []).append(column)
    return GroupCounts(
        tuple(map(tuple, columns.values())),
        arrays.people.astype(np.int64),
        invited,
        without_rate,
    )


@dataclass(frozen=True)
class PublishedFigures:
    """Figures without the people who are left out, of the state and districts."""

    people: Integers
    finished: Integers
    # [place, group, column of the layout], and after these one for each item: the
    # people who can have answered it.
    counts: Counts
    # Options whose people are not those of their item.
    hidden: Mapping[str, Mask]


def _published(tables: ResultTables, decision: Decision) -> PublishedFigures:
    arrays, tree, groups = tables.arrays, tables.tree, tables.groups
    items, columns = arrays.layout.items, arrays.layout.columns
    inner = len(tree) - len(tree.leaves)
    counts = np.zeros((inner, len(arrays.groups), len(columns) + len(items)), np.int32)

    def published(numbers: Integers, table: str | None = None) -> Integers:
        return decision.published(tree, groups, numbers, table)[:inner]

    hidden = {}
    for position, item in enumerate(items, len(columns)):
        base = published(arrays.people, item.name)
        counts[:, :, position] = base
        for number in arrays.columns_of(item.name):
            table = f"{item.name} {columns[number].value}"
            is_option = columns[number].kind == "value" and table in decision.items
            if is_option:
                hidden[table] = published(arrays.people, table) != base
            counts[:, :, number] = published(
                arrays.counts[:, :, number], table if is_option else item.name
            )
    return PublishedFigures(
        published(arrays.people), published(arrays.finished), counts, hidden
    )


def _store(
    administration: Administration,
    arrays: ResultArrays,
    decision: Decision,
    published: PublishedFigures,
) -> None:
    """Write what has changed; many rows are hidden, and few partly so."""
    place_of = {place: number for number, place in enumerate(arrays.places)}
    column_of = {group: number for number, group in enumerate(arrays.groups)}
    hides_some = np.zeros_like(decision.groups)
    for mask in decision.items.values():
        hides_some |= mask
    for mask in published.hidden.values():
        hides_some[: len(mask)] |= mask
    hidden, partly = [], []
    rows = GroupResults.objects.filter(administration=administration)
    stored_rows = rows.values_list(
        *("pk", "level", "place_id", "attribute", "value", *DECIDED)
    )
    for pk, level, place_id, attribute, value, *stored in stored_rows.iterator():
        place = place_of[level, place_id]
        column = column_of.get((attribute, value))
        figures = None
        is_hidden = column is None or bool(decision.groups[place, column])
        if column is not None and not is_hidden and place < len(published.people):
            is_hidden = not published.people[place, column]
            figures = _figures_without_left_out(arrays, published, (place, column))
        if is_hidden:
            was_hidden, *_fields = stored
            if not was_hidden:
                hidden.append(pk)
            continue
        items = []
        if hides_some[place, column]:
            items = [
                name
                for name, mask in decision.items.items()
                if mask[place, column]
                or (figures and name in published.hidden)
                and published.hidden[name][place, column]
            ]
        new = [False, items, *(figures or (None, None, None))]
        stored[-1] = stored[-1] and bytes(stored[-1])
        if stored != new:
            partly.append(GroupResults(pk=pk, **dict(zip(DECIDED, new, strict=True))))
    for start in range(0, len(hidden), 5000):
        rows.filter(pk__in=hidden[start : start + 5000]).update(is_hidden=True)
    GroupResults.objects.bulk_update(partly, DECIDED, batch_size=500)


def _figures_without_left_out(
    arrays: ResultArrays, published: PublishedFigures, cell: tuple[int, int]
) -> tuple[int, int, bytes] | None:
    """Return the figures to store, or None if nobody is left out."""
    counts, columns = published.counts[cell], len(arrays.layout.columns)
    people = arrays.people[cell]
    if published.people[cell] == people and (counts[columns:] == people).all():
        return None
    return int(published.people[cell]), int(published.finished[cell]), packed(counts)
