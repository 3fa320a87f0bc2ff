"""Decide what the rows of a release show of place, grade, language and subgroups.

Decided by the frozen people of the release and by what its results pages hide, and by
nothing that a person chooses for a file. So a row shows the same in all files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import numpy as np
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext

from accounts.permissions import Places
from reports.exports.masked_items import PageGroup, answered_by_class, masked_items
from reports.exports.shown_values import Column, shown_values
from reports.models import CountedSchool, GroupResults, ResultsRollUp
from reports.releases.counting import value_of
from reports.releases.frozen_people import SchoolPeople, unpacked
from reports.releases.levels import LEVELS
from survey.models import Administration

COARSENED = "*"
LANGUAGE = "language"
FEWEST_SCHOOLS = 2


class ShownPlace(NamedTuple):
    """The place that a row shows: a school, or a district, or only the state."""

    district: int | None = None
    school: int | None = None

    @property
    def key(self) -> str:
        if self.school is not None:
            return str(self.school)
        return COARSENED if self.district is None else f"d{self.district}"

    def is_in(self, places: Places) -> bool:
        """Test if a file of these places has the row: only of all that it may mean."""
        return (
            places.state
            or self.district in places.districts
            or self.school in places.schools
        )


class ShownCells(NamedTuple):
    """What a row shows of a person; COARSENED where it shows nothing."""

    place: ShownPlace
    grade: str
    language: str
    # In the order of `ReleaseMask.subgroups`; None without a value.
    subgroups: Sequence[str | None]
    # Items of which it shows no answer; the same wherever all other cells are.
    masked_items: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HiddenOnPages:
    """What the results pages of a place hide."""

    groups: set[PageGroup] = field(default_factory=set)
    # By group; everyone is ("", "").
    items: dict[PageGroup, set[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MaskedSchool:
    """The people of a school, and what their rows show."""

    people: SchoolPeople
    # By group of `people`.
    cells: Sequence[ShownCells]


@dataclass(frozen=True, slots=True)
class ReleaseMask:
    """What is shown of the people of a release."""

    administration: Administration
    alias: str
    as_of: datetime
    # The subgroups that were counted, in the order of their columns.
    subgroups: Sequence[str]
    # Attributes that results pages show figures by.
    on_pages: Collection[str]
    # The place that the rows of each school show; None in no file.
    places: Mapping[int, ShownPlace | None]
    # People of each school.
    sizes: Mapping[int, int]
    # The district of each school when it was counted.
    districts: Mapping[int, int]

    def people_left_out(self) -> int:
        """Return the number of people who are in no file."""
        return sum(
            self.sizes[school] for school, place in self.places.items() if place is None
        )

    def people_without_school(self) -> int:
        """Return the number of people in files, and of no school there."""
        return sum(
            self.sizes[school]
            for school, place in self.places.items()
            if place is not None and place.school is None
        )

    def has_people_in(self, places: Places) -> bool:
        """Test if people were counted at these places, whatever their rows show."""
        return any(
            ShownPlace(self.districts[school], school).is_in(places)
            for school in self.sizes
        )

    def schools(self, places: Places) -> Iterator[MaskedSchool]:
        """Return the schools with rows in a file of these places. 2 statements.

        One is kept in memory at a time, and all that share a larger place.
        """
        wanted = [
            school
            for school, place in self.places.items()
            if place is not None and place.is_in(places)
        ]
        hidden = self._hidden_on_pages()
        coarsened: defaultdict[ShownPlace, list[SchoolPeople]] = defaultdict(list)
        rows = CountedSchool.objects.using(self.alias).filter(
            administration=self.administration
        )
        if len(wanted) < len(self.places):
            rows = rows.filter(school_id__in=wanted)
        rows = rows.exclude(people=b"").order_by("school_id")
        for school, stored, counted_at in rows.values_list(
            "school_id", "people", "counted_at"
        ).iterator(chunk_size=100):
            place = self.places.get(school)
            if place is None:
                continue
            people = unpacked(stored, school, counted_at)
            if place.school is None:
                coarsened[place].append(people)
            else:
                yield from self._masked(place, [people], hidden)
        for place, schools in coarsened.items():
            yield from self._masked(place, schools, hidden)

    def _hidden_on_pages(self) -> Mapping[tuple[str, int], HiddenOnPages]:
        """Return what the pages hide, by level and place."""
        hidden: defaultdict[tuple[str, int], HiddenOnPages] = defaultdict(HiddenOnPages)
        rows = GroupResults.objects.using(self.alias).filter(
            administration=self.administration
        )
        rows = rows.exclude(is_hidden=False, hidden_items=[])
        for level, place, *group, is_hidden, items in rows.values_list(
            *("level", "place_id", "attribute", "value", "is_hidden", "hidden_items")
        ):
            on_page, key = hidden[level, place], (group[0], group[1])
            if is_hidden:
                on_page.groups.add(key)
            # An option of a multiple choice hides the item: rows have all options.
            on_page.items[key] = {name.partition(" ")[0] for name in items}
        return hidden

    def _masked(
        self,
        place: ShownPlace,
        schools: Sequence[SchoolPeople],
        hidden_on_pages: Mapping[tuple[str, int], HiddenOnPages],
    ) -> Iterator[MaskedSchool]:
        groups = [group for people in schools for group in people.groups]
        sizes = np.concatenate(
            [
                np.bincount(people.group, minlength=len(people.groups))
                for people in schools
            ]
        )
        hidden = hidden_on_pages.get(_page_of(place), HiddenOnPages())
        columns = []
        for name in ("grade", LANGUAGE, *self.subgroups):
            texts = [
                group.language if name == LANGUAGE else value_of(name, group)
                for group in groups
            ]
            values, codes = np.unique(texts, return_inverse=True)
            columns.append(
                Column(
                    values.tolist(),
                    codes.reshape(-1),
                    np.array(
                        [(name, value) in hidden.groups for value in values.tolist()]
                    ),
                    name in self.on_pages,
                )
            )
        minimum = self.administration.minimum_group
        if minimum > 1:
            shown = shown_values(columns, sizes, minimum)
        else:
            shown = [np.ones(len(column.values), np.bool_) for column in columns]
        texts_of = [
            np.where(flags, column.values, COARSENED)[column.codes].tolist()
            for column, flags in zip(columns, shown, strict=True)
        ]
        cells = [
            ShownCells(
                place,
                grade,
                language,
                tuple(subgroup or None for subgroup in subgroups),
            )
            for grade, language, *subgroups in zip(*texts_of, strict=True)
        ]
        if minimum > 1:
            cells = self._without_items(cells, schools, hidden)
        start = 0
        for people in schools:
            yield MaskedSchool(people, cells[start : start + len(people.groups)])
            start += len(people.groups)

    def _without_items(
        self,
        cells: Sequence[ShownCells],
        schools: Sequence[SchoolPeople],
        hidden: HiddenOnPages,
    ) -> list[ShownCells]:
        """Return the cells with the items that people with all the same ones mask."""
        numbers: dict[ShownCells, int] = {}
        classes = [numbers.setdefault(shown, len(numbers)) for shown in cells]
        masked = masked_items(
            [self._page_groups(shown) for shown in numbers],
            answered_by_class(schools, classes),
            hidden.items,
            self.administration.minimum_group,
        )
        return [
            shown._replace(masked_items=masked[number])
            for shown, number in zip(cells, classes, strict=True)
        ]

    def _page_groups(self, shown: ShownCells) -> list[PageGroup]:
        """Return the groups of the pages in which a row shows that a person is."""
        values = {
            "grade": shown.grade,
            LANGUAGE: shown.language,
            **dict(zip(self.subgroups, shown.subgroups, strict=True)),
        }
        known = [(name, value or "") for name, value in values.items()]
        return [("", ""), *(group for group in known if group[1] != COARSENED)]


def _page_of(place: ShownPlace) -> tuple[str, int]:
    """Return the level and key of a place on results pages."""
    if place.school is not None:
        return LEVELS.SCHOOL, place.school
    if place.district is not None:
        return LEVELS.DISTRICT, place.district
    return LEVELS.STATE, 0


def release_mask(administration: Administration, alias: str) -> ReleaseMask | None:
    """Return what is shown of a release; None without one. 3 statements."""
    roll_up = released_roll_up(administration, alias)
    if roll_up is None:
        return None
    counted = list(roll_up.layout["attributes"])
    districts = dict(
        CountedSchool.objects.using(alias)
        .filter(administration=administration)
        .exclude(people=b"")
        .values_list("school_id", "district_id")
    )
    everyone = GroupResults.objects.using(alias).filter(
        administration=administration, attribute="", value=""
    )
    sizes: dict[int, int] = {}
    hidden: set[tuple[str, int]] = set()
    for level, place, people, is_hidden in everyone.values_list(
        "level", "place_id", "people", "is_hidden"
    ):
        if is_hidden:
            hidden.add((level, place))
        if level == LEVELS.SCHOOL and people and place in districts:
            sizes[place] = people
    return ReleaseMask(
        administration,
        alias,
        roll_up.as_of,
        [name for name in administration.subgroups if name in counted],
        counted,
        shown_places(sizes, districts, hidden, administration.minimum_group),
        sizes,
        districts,
    )


def released_roll_up(
    administration: Administration, alias: str
) -> ResultsRollUp | None:
    """Return the release, once it is decided what it hides. 1 statement."""
    return (
        ResultsRollUp.objects.using(alias)
        .filter(
            pk=administration.pk, released_at__isnull=False, hidden_as_of=F("as_of")
        )
        .first()
    )


def shown_places(
    sizes: Mapping[int, int],
    districts: Mapping[int, int],
    hidden: Collection[tuple[str, int]],
    minimum: int,
) -> dict[int, ShownPlace | None]:
    """Return the place that the rows of each school show; None if they are left out.

    A school that the pages show keeps its name if it has the minimum of people. The
    others are together at least two schools and the minimum of people in the district,
    or else in the state. `hidden` are places that the pages hide: the file's rows of
    all other schools, subtracted from the figures of a larger place, would be theirs.
    """
    places: dict[int, ShownPlace | None] = {}
    small: defaultdict[int, list[int]] = defaultdict(list)
    for school in sorted(sizes):
        district = districts[school]
        if minimum <= 1 or (
            sizes[school] >= minimum and (LEVELS.SCHOOL, school) not in hidden
        ):
            places[school] = ShownPlace(district, school)
        else:
            small[district].append(school)

    def are_enough(schools: Sequence[int]) -> bool:
        people = sum(sizes[school] for school in schools)
        return len(schools) >= FEWEST_SCHOOLS and people >= minimum

    passed_up: list[int] = []
    for district, schools in small.items():
        if are_enough(schools) and (LEVELS.DISTRICT, district) not in hidden:
            places |= dict.fromkeys(schools, ShownPlace(district))
        else:
            passed_up += schools
    is_shown = are_enough(passed_up) and (LEVELS.STATE, 0) not in hidden
    return places | dict.fromkeys(passed_up, ShownPlace() if is_shown else None)


def no_release(administration: Administration) -> str:
    return gettext(
        "%(title)s has no results yet. A file without names has the people of the"
        " results, so wait until the survey round has closed and its answers are"
        " counted. That begins a quarter of an hour after the closing."
    ) % {"title": administration.title}


def count_people(
    administration: Administration, alias: str, places: Places, *, finished_only: bool
) -> int | None:
    """Return how many people of a release are in these places; None without one.

    In whatever rows: a file may have fewer. 2 statements.
    """
    if released_roll_up(administration, alias) is None:
        return None
    schools = _schools_in(administration, alias, places)
    rows = GroupResults.objects.using(alias).filter(
        administration=administration, level=LEVELS.SCHOOL, attribute="", value=""
    )
    counts = rows.filter(place_id__in=schools.values("school_id")).values_list(
        "finished" if finished_only else "people", flat=True
    )
    return sum(counts)


def released_keys(
    administration: Administration, alias: str, places: Places, *, finished_only: bool
) -> list[int]:
    """Return the people of a release who were counted in these places. 2 statements."""
    if released_roll_up(administration, alias) is None:
        return []
    rows = _schools_in(administration, alias, places).exclude(people=b"")
    keys: list[int] = []
    for school, stored in rows.values_list("school_id", "people").iterator():
        people = unpacked(stored, school, None)
        ids: Iterable[int] = people.ids[people.finished | (not finished_only)].tolist()
        keys.extend(ids)
    return keys


def _schools_in(
    administration: Administration, alias: str, places: Places
) -> QuerySet[CountedSchool]:
    rows = CountedSchool.objects.using(alias).filter(administration=administration)
    if places.state:
        return rows
    return rows.filter(
        Q(district_id__in=places.districts) | Q(school_id__in=places.schools)
    )
