"""Read what each reader is shown of an administration, with the product's functions.

Pages and files are made of what these return: `visible_groups` for staff, `Freezer`
for everybody, `figures_for` and the lines of response rates for coordinators. Changes
between waves are calculated from these figures of both, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from django.utils import timezone

from accounts.models import School, User
from accounts.permissions import Permissions
from provisioning.suppression_attack.database import REST, Stored
from reports.console.results.page import places_to_compare
from reports.models import GradeRate
from reports.publishing.freezing import Freezer
from reports.publishing.page import group_of
from reports.results.access import capability_for, threshold_of
from reports.results.counting import GRADE
from reports.results.reading import LEVELS, ItemDistribution
from reports.results.visible import Place, VisibleGroup, visible_groups
from reports.results.wholes import figures_for
from reports.suppression.tables import EVERYONE, Mask, PlaceTree
from reports.thresholds import ThresholdState
from reports.visible_rates import (
    grade_lines,
    lines_of_school,
    schools_with_reports,
    sees_all_of,
)

PEOPLE = ""
SCHOOL = LEVELS.SCHOOL.value


@dataclass(frozen=True)
class Figure:
    """Numbers of the people of some schools together.

    `table` is an item, or PEOPLE for the number of people. Schools and column are
    positions in the hierarchy.
    """

    schools: frozenset[int]
    column: int
    table: str
    numbers: tuple[int, ...]
    is_rate: bool = False


@dataclass(frozen=True)
class View:
    """The figures that a reader sees, and the reader's own schools."""

    figures: list[Figure]
    own: frozenset[int]


def differences(stored: Stored) -> int:
    """Count groups that pages do not show as the decision says."""
    hierarchy, decision = stored.hierarchy, stored.decision
    tree, groups = hierarchy.tree, hierarchy.groups
    people = decision.published(tree, groups, groups.people)
    counts = {
        name: decision.published(tree, groups, table, name)
        for name, table in hierarchy.items.items()
    }
    found = 0
    for column, group in enumerate(stored.groups):
        shown = visible_groups(stored.administration, stored.places, *group)
        for place, key in enumerate(stored.places):
            visible = shown.get(key)
            is_hidden = decision.groups[place, column] or not people[place, column]
            if visible is None or is_hidden:
                found += bool(visible) == bool(is_hidden)
                continue
            found += visible.people != people[place, column]
            for name, table in counts.items():
                numbers = _numbers(stored, name, visible)
                if decision.items[name][place, column]:
                    found += numbers is not None
                elif numbers is None:
                    # Options of other people than those of their item.
                    found += " " not in name
                else:
                    found += list(numbers) != table[place, column].tolist()
    return int(found)


def staff_view(stored: Stored) -> View:
    """Return what staff of the state see: everything that is not hidden."""
    figures: list[Figure] = []
    for column, group in enumerate(stored.groups):
        shown = visible_groups(stored.administration, stored.places, *group)
        for place, key in enumerate(stored.places):
            if visible := shown.get(key):
                figures += _of_place(stored, place, column, visible)
    return View(figures, frozenset())


def public_view(stored: Stored, *, protected: bool = True) -> View:
    """Return what everybody may read; unprotected, districts are of all schools."""
    administration = stored.administration
    frozen = {
        (place.level, place.place_id): group_of(place.answers, timezone.now())
        for place in Freezer(administration).places()
    }
    number_of = {place: number for number, place in enumerate(stored.places)}
    schools = {
        number_of[place]: group for place, group in frozen.items() if place[0] == SCHOOL
    }
    figures: list[Figure] = []
    for school, group in schools.items():
        figures += _figures(stored, {PEOPLE: [school]}, EVERYONE, group, [school])
    wholes: Mapping[Place, VisibleGroup | None] = {
        place: group for place, group in frozen.items() if place[0] != SCHOOL
    }
    if not protected:
        wholes = visible_groups(administration, wholes)
    for place, visible in wholes.items():
        if visible is None:
            continue
        below = _schools_below(stored, number_of[place])
        summed = _schools_by_table(stored, schools, below)
        if not protected or not schools:
            summed = dict.fromkeys(summed, below)
        figures += _figures(stored, summed, EVERYONE, visible, below)
    return View(figures, frozenset())


def coordinator_view(
    stored: Stored, schools: Collection[int], user: User, *, protected: bool = True
) -> View:
    """Return what the coordinator of schools sees of results and response rates.

    Unprotected, larger places are shown as they are stored.
    """
    administration = stored.administration
    permissions = Permissions(user)
    places = [stored.places[school][1] for school in schools]
    found = School.objects.filter(pk__in=places).select_related("district")
    number_of = {place: number for number, place in enumerate(stored.places)}
    figures: list[Figure] = []
    for school in found:
        own = number_of[SCHOOL, school.pk]
        figures += _rates(stored, own, school, permissions)
        threshold = threshold_of(permissions, administration, school)
        if threshold is None or threshold.state != ThresholdState.REACHED:
            continue
        wanted = places_to_compare(
            administration,
            permissions.places(capability_for(administration)),
            school.district,
            school,
        ).values()
        for column, group in enumerate(stored.groups):
            if protected:
                shown = figures_for(permissions, administration, wanted, *group)
            else:
                shown = visible_groups(administration, wanted, *group)
            for place, visible in shown.items():
                if visible is None or place not in number_of:
                    continue
                figures += _of_place(stored, number_of[place], column, visible)
    return View(figures, frozenset(schools))


def _of_place(
    stored: Stored, place: int, column: int, visible: VisibleGroup
) -> Iterator[Figure]:
    below = _schools_below(stored, place)
    if visible.is_sum_of_reports:
        administration = stored.administration
        reports = set(
            schools_with_reports(administration).values_list("school_id", flat=True)
        )
        keys = [stored.places[school] for school in below]
        shown = visible_groups(
            administration, [key for key in keys if key[1] in reports]
        )
        number_of = {key: number for number, key in enumerate(stored.places)}
        schools = {number_of[key]: group for key, group in shown.items() if group}
        summed = _schools_by_table(stored, schools, below)
    else:
        summed = {
            table: _counted(stored, place, column, table)
            for table in (PEOPLE, *stored.hierarchy.items)
        }
    yield from _figures(stored, summed, column, visible, below)


def _counted(stored: Stored, place: int, column: int, table: str) -> list[int]:
    """Return the schools that a stored figure adds up."""
    tree, decision = stored.hierarchy.tree, stored.decision
    if column == EVERYONE:
        return _schools_below(stored, place)
    attributes = stored.hierarchy.groups.attributes
    number = next(n for n, columns in enumerate(attributes) if column in columns)
    counted = decision.counted_items[table] if table else decision.counted
    return counted_schools(tree, counted[:, number], place)


def _schools_below(stored: Stored, place: int) -> list[int]:
    tree = stored.hierarchy.tree
    inside = {place, *tree.below(place).tolist()}
    return [leaf for leaf in tree.leaves.tolist() if leaf in inside]


def _schools_by_table(
    stored: Stored, shown: Mapping[int, VisibleGroup], below: Iterable[int]
) -> dict[str, list[int]]:
    """Return the schools that show the number of people, and each item."""
    schools = [school for school in below if school in shown]
    found = {PEOPLE: schools}
    for name in stored.hierarchy.items:
        item = name.partition(" ")[0]
        found[name] = [
            school
            for school in schools
            if item in shown[school].items and item not in shown[school].hidden_options
        ]
    return found


def _figures(
    stored: Stored,
    schools: Mapping[str, Collection[int]],
    column: int,
    visible: VisibleGroup,
    otherwise: Collection[int],
) -> Iterator[Figure]:
    """Yield the number of people and the items; `schools` are those of each table."""
    people = (visible.people,)
    chosen = frozenset(schools.get(PEOPLE, otherwise))
    yield Figure(chosen, column, PEOPLE, people)
    for name in stored.hierarchy.items:
        numbers = _numbers(stored, name, visible)
        if numbers is not None:
            chosen = frozenset(schools.get(name, otherwise))
            yield Figure(chosen, column, name, numbers)


def _numbers(
    stored: Stored, table: str, visible: VisibleGroup
) -> tuple[int, ...] | None:
    """Return the counts of a table's categories; None if they are not shown."""
    name, _, option = table.partition(" ")
    item = visible.items.get(name)
    if item is None or option in visible.hidden_options.get(name, ()):
        return None
    base = item.answered + item.skipped + item.not_applicable + item.not_reached
    known = {
        column: _number(item, column.kind, column.value)
        for column in stored.categories[table]
        if column.value != REST
    }
    rest = base - sum(known.values())
    return tuple(known.get(column, rest) for column in stored.categories[table])


def _number(item: ItemDistribution, kind: str, value: str) -> int:
    if kind == "value":
        return item.values.get(value, 0)
    return {
        "answered": item.answered,
        "skipped": item.skipped,
        "not applicable": item.not_applicable,
    }[kind]


def _rates(
    stored: Stored, own: int, school: School, permissions: Permissions
) -> Iterator[Figure]:
    """Yield how many have started in a school and its grades, if that is shown."""
    administration = stored.administration
    for line in lines_of_school(permissions, school, [administration]):
        if line.started is not None:
            yield Figure(frozenset([own]), EVERYONE, PEOPLE, (line.started,), True)
        rows = GradeRate.objects.filter(administration=administration, school=school)
        grades = list(rows.order_by("grade"))
        lines = grade_lines(
            grades,
            school_is_hidden=line.is_hidden,
            sees_all=sees_all_of(permissions, administration, school),
        )
        for grade, of_grade in zip(grades, lines, strict=False):
            group = (GRADE, grade.grade)
            if of_grade.started is not None and group in stored.groups:
                column = stored.groups.index(group)
                numbers = (of_grade.started,)
                yield Figure(frozenset([own]), column, PEOPLE, numbers, True)


def counted_schools(tree: PlaceTree, counted: Mask, place: int) -> list[int]:
    """Return the schools that a figure by an attribute adds up."""
    children = tree.children(place)
    if not len(children):
        return [place]
    parts = children[counted[children]].tolist()
    return [school for part in parts for school in counted_schools(tree, counted, part)]


def schools_without_report(stored: Stored) -> set[int]:
    reports = schools_with_reports(stored.administration)
    keys = set(reports.values_list("school_id", flat=True))
    return {
        leaf
        for leaf in stored.hierarchy.tree.leaves.tolist()
        if stored.places[leaf][1] not in keys
    }
