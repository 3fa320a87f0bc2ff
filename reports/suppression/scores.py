"""Decide which scores of groups are hidden.

A score is a mean, and means of groups, added and subtracted with their numbers of
people, are means of other groups. So the people who have a measure are looked at here
as `results` looks at those who have answered an item. What results hide is hidden
before; the rules only hide more:

* A school shows scores of groups only where it shows that of everyone.
* A group of fewer people with the measure than the minimum is hidden, and so is a group
  of which fewer than three differ from the others: its score would be their answers.
* In a school, no sum of shown groups with any factors isolates fewer people than the
  minimum, nor a group that is hidden because its people are alike (`lattice`).
* A larger place has by an attribute the schools that show all of its groups there. So
  it is a sum of what is shown, and its groups are of the same schools.
* Where schools show no groups because too many people would be left out (an undivided
  place of `results`), it has all schools of the place's figures, unless sums of its
  groups and of all that is shown in it isolate a few people.
* A larger place shows all groups of an attribute, or none. That results hide an item
  there, because a school does, hides nothing: schools that hide the measure are in no
  sum of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reports.suppression.dependent_groups import MOSTLY_ANSWERED, in_columns
from reports.suppression.lattice import (
    LARGEST_WEIGHT,
    Floats,
    TooManySums,
    group_to_hide,
    light_sums,
    may_isolate,
    reduced_basis,
    scalar_products,
    short_sums,
    short_vectors,
    sizes,
)
from reports.suppression.tables import CANDIDATES, EVERYONE, Integers, Mask


@dataclass(frozen=True)
class MeasuredPeople:
    """The people of each school by their patterns of groups, and their measures.

    Column 0 is everyone; the columns of each attribute add up to it.
    """

    attributes: Sequence[tuple[int, ...]]
    # The first pattern of each school.
    starts: Integers
    # [pattern, column]
    members: Mask
    # People with each measure: [pattern, measure].
    measured: Integers

    @cached_property
    def people(self) -> Integers:
        """People with each measure: [school, column, measure]."""
        of_columns = [
            np.add.reduceat(
                np.where(self.members[:, [column]], self.measured, 0),
                self.starts,
                axis=0,
            )
            for column in range(self.members.shape[1])
        ]
        return np.stack(of_columns, axis=1)

    def patterns_of(self, school: int) -> slice:
        ends = np.append(self.starts[1:], len(self.members))
        return slice(int(self.starts[school]), int(ends[school]))


@dataclass(frozen=True)
class ScoreTables:
    """The scores that could be shown of an administration, and what may not be."""

    people: MeasuredPeople
    # How many people of a cell differ from the most frequent measure in it; and what
    # results show: [school, column, measure].
    differing: Integers
    released: Mask
    # Cells that readers have not seen before: they are hidden first.
    unseen: Mask
    # Schools whose report shows the measure of everyone: [school, measure].
    everyone: Mask
    # Position of each school's district.
    districts: Integers
    # What results show of districts, and of the state: [place, column, measure].
    released_districts: Mask
    released_state: Mask
    # Schools in the sums of undivided districts, and of the undivided state, by
    # attribute; nowhere in divided ones: [school, attribute].
    summed: Mask
    summed_in_state: Mask
    minimum: int


@dataclass(frozen=True)
class PlaceScores:
    """The scores by one attribute of larger places."""

    # The schools that are added up: [measure, school].
    counted: Mask
    # [measure, place]
    shown: Mask


@dataclass(frozen=True)
class ShownScores:
    """The scores of groups that are shown."""

    # [school, column, measure]
    schools: Mask
    # By number of the attribute.
    districts: Sequence[PlaceScores]
    state: Sequence[PlaceScores]


def decide_scores(tables: ScoreTables) -> ShownScores:
    """Return which scores of groups are shown, from the schools upwards."""
    people, minimum = tables.people.people, tables.minimum
    alike = (people > 0) & (tables.differing < CANDIDATES)
    # The score of everyone is shown in any case.
    alike[:, EVERYONE] = False
    shown = tables.released & tables.everyone[:, None] & (people >= minimum) & ~alike
    shown[:, EVERYONE] = tables.everyone
    for school in np.flatnonzero(shown[:, EVERYONE + 1 :].any(axis=(1, 2))).tolist():
        patterns = tables.people.patterns_of(school)
        shown[school] = shown_in_school(
            *(tables.people.members[patterns], tables.people.measured[patterns]),
            *(shown[school], alike[school], tables.unseen[school]),
            minimum=minimum,
        )
    return _LargerPlaces(tables, shown).decide()


def shown_in_school(
    members: Mask,
    measured: Integers,
    shown: Mask,
    alike: Mask,
    unseen: Mask,
    *,
    minimum: int,
) -> Mask:
    """Return the groups of a school that are shown, of `shown` ones.

    `members` are [pattern, column], `measured` people [pattern, measure]; all others
    [column, measure].
    """
    shown = shown.copy()
    columns = np.flatnonzero(shown.any(axis=1))
    people = measured.max(axis=1)
    missing = (people[:, None] - measured).sum(axis=0)
    mostly = measured.sum(axis=0) >= MOSTLY_ANSWERED * people.sum()
    sums = _sums_of_few(
        *(members[:, columns], measured[:, mostly], people),
        *(missing[mostly].max(initial=0), minimum),
    )
    if sums is not None:
        sums = in_columns(sums, columns, members.shape[1])
    weights = members.astype(float)
    for measure in np.flatnonzero(shown[EVERYONE]).tolist():
        of_measure = np.flatnonzero(shown[:, measure])
        if not mostly[measure]:
            light = _light_sums(members, measured[:, measure], of_measure, minimum)
        elif sums is None:
            light = None
        else:
            size = sizes(sums, weights, measured[:, measure])
            light = sums[(size > 0) & (size < minimum)]
        if light is None:
            shown[EVERYONE + 1 :, measure] = False
            continue
        # Groups that are hidden because they are alike, besides sums of few people.
        of_alike = np.eye(len(shown), dtype=np.int64)[alike[:, measure]]
        to_hide = np.concatenate([light, of_alike])
        gram = scalar_products(weights, measured[:, measure])
        number = gram.diagonal()
        while True:
            group = group_to_hide(gram, to_hide, of_measure, number, unseen[:, measure])
            if group is None:
                break
            shown[group, measure] = False
            of_measure = of_measure[of_measure != group]
    return shown


def _sums_of_few(
    members: Mask, measured: Integers, people: Integers, missing: int, minimum: int
) -> Integers | None:
    """Return sums of these groups that may be of few people; None: there are too many.

    As `dependent_groups.Search.sums_of_few`: of `people` with any measure, of whom at
    most so many are `missing` in one.
    """
    nothing = np.zeros((0, members.shape[1]), dtype=np.int64)
    fewest = measured.min(axis=1, initial=people.max(initial=0))
    if not measured.shape[1] or not may_isolate(
        members, np.where(people > 0, fewest.clip(1), 0), minimum
    ):
        return nothing
    longest = max(LARGEST_WEIGHT**2 * (minimum - 1), missing + minimum - 1)
    try:
        return short_sums(members, people, longest)
    except TooManySums:
        return None


def _light_sums(
    members: Mask, people: Integers, columns: Integers, minimum: int
) -> Integers | None:
    try:
        sums = light_sums(members[:, columns], people, minimum)
    except TooManySums:
        return None
    return in_columns(sums, columns, members.shape[1])


class _LargerPlaces:
    """Adds up schools to districts and the state, and decides what these show."""

    def __init__(self, tables: ScoreTables, shown: Mask) -> None:
        self.tables, self.shown = tables, shown
        self.people = tables.people.people
        self.attributes = [list(columns) for columns in tables.people.attributes]
        self.undivided: Mask = np.asarray(tables.summed_in_state.any(axis=0))
        # Columns of undivided places, and which of them each school is a part of.
        summed = tables.summed | tables.summed_in_state
        self.in_sums = [n for n in range(len(self.attributes)) if summed[:, n].any()]
        self.columns = [
            column for number in self.in_sums for column in self.attributes[number]
        ]
        of_column = [
            number for number in self.in_sums for _column in self.attributes[number]
        ]
        self.of_column = np.array(of_column, dtype=np.int64)
        self.summed = summed[:, of_column]

    def decide(self) -> ShownScores:
        tables = self.tables
        count = len(tables.released_districts)
        measures = self.people.shape[2]
        counted: list[Mask] = []
        shown: list[Mask] = []
        for number in range(len(self.attributes)):
            counted.append(self._counted_in_district(number))
            shown.append(
                self._complete(
                    number, counted[-1], tables.districts, tables.released_districts
                )
            )
        in_state = []
        for measure in range(measures):
            grams = self._grams(measure, count)
            for district in range(count):
                self._hide_in_district(grams[district], district, measure, shown)
            in_state.append(self._state_gram(grams, measure, shown))
        state = []
        for number in range(len(self.attributes)):
            # A school is in the state's sum if its district shows its own.
            parts = counted[number] & shown[number][:, tables.districts]
            if self.undivided[number]:
                everyone = tables.everyone.T
                parts = everyone & tables.summed_in_state[:, number]
            everywhere = np.zeros_like(tables.districts)
            of_state = self._complete(number, parts, everywhere, tables.released_state)
            state.append(PlaceScores(parts, of_state))
        for measure in range(measures):
            self._hide_in_state(in_state[measure], measure, state)
        districts = [PlaceScores(*both) for both in zip(counted, shown, strict=True)]
        return ShownScores(self.shown, districts, state)

    def _counted_in_district(self, number: int) -> Mask:
        """Return the schools in their district's sum by an attribute."""
        tables, columns = self.tables, self.attributes[number]
        if self.undivided[number]:
            return np.zeros_like(tables.everyone.T)
        cells = self.shown[:, columns]
        shows_all = (cells | (self.people[:, columns] == 0)).all(axis=1)
        shows_all &= cells.any(axis=1)
        is_undivided = np.zeros(len(tables.released_districts), dtype=bool)
        is_undivided[tables.districts[tables.summed[:, number]]] = True
        summed = tables.everyone & tables.summed[:, [number]]
        of_district = is_undivided[tables.districts][:, None]
        return np.where(of_district, summed, shows_all).T

    def _complete(
        self, number: int, counted: Mask, places: Integers, released: Mask
    ) -> Mask:
        """Return the places that show all groups of an attribute: [measure, place]."""
        columns = self.attributes[number]
        sums = np.zeros((2, len(released), len(columns), self.people.shape[2]), int)
        for total, cells in zip(
            sums, (self.people, self.tables.differing), strict=True
        ):
            part = np.where(counted.T[:, None], cells[:, columns], 0)
            np.add.at(total, places, part)
        people, differing = sums
        shows = (people >= self.tables.minimum) & (differing >= CANDIDATES)
        shows &= released[:, columns]
        all_shown: Mask = (shows | (people == 0)).all(axis=1)
        all_shown &= (people > 0).any(axis=1)
        return all_shown.T.copy()

    def _grams(self, measure: int, districts: int) -> Floats:
        """Return the products of the groups in undivided sums, by district.

        Of what is orthogonal to what the schools show themselves.
        """
        size = len(self.columns)
        grams = np.zeros((districts, size, size))
        if not size:
            return grams
        data = self.tables.people
        for school in np.flatnonzero(self.tables.everyone[:, measure]).tolist():
            if not self.summed[school].any():
                continue
            patterns = data.patterns_of(school)
            weights = data.measured[patterns, measure][:, None]
            summed = data.members[patterns][:, self.columns].astype(float)
            summed *= self.summed[school]
            columns = np.flatnonzero(self.shown[school, :, measure])
            known = data.members[patterns][:, columns].astype(float)
            grams[self.tables.districts[school]] += summed.T @ (
                weights * summed
            ) - _within(summed.T @ (weights * known), known.T @ (weights * known))
        return grams

    def _hide_in_district(
        self, gram: Floats, district: int, measure: int, shown: Sequence[Mask]
    ) -> None:
        accepted: list[int] = []
        in_district = self.tables.districts == district
        for number in self.in_sums:
            if not self.tables.summed[in_district, number].any():
                continue
            if not shown[number][measure, district]:
                continue
            if self._isolate(gram, [*accepted, number]):
                shown[number][measure, district] = False
            else:
                accepted.append(number)

    def _state_gram(self, grams: Floats, measure: int, shown: Sequence[Mask]) -> Floats:
        """Return the products that are orthogonal to what districts show, too."""
        total = np.zeros(grams.shape[1:])
        for district, gram in enumerate(grams):
            numbers = [
                number
                for number in self.in_sums
                if not self.undivided[number] and shown[number][measure, district]
            ]
            places = np.flatnonzero(np.isin(self.of_column, numbers))
            both = gram[:, places]
            total += gram - _within(both, gram[np.ix_(places, places)])
        return total

    def _hide_in_state(
        self, gram: Floats, measure: int, state: Sequence[PlaceScores]
    ) -> None:
        accepted: list[int] = []
        for number in self.in_sums:
            if not self.undivided[number] or not state[number].shown[measure, 0]:
                continue
            if self._isolate(gram, [*accepted, number]):
                state[number].shown[measure, 0] = False
            else:
                accepted.append(number)

    def _isolate(self, gram: Floats, numbers: Sequence[int]) -> bool:
        """Return whether sums of the groups of these attributes isolate a few people.

        As in `DependentGroups.isolate_in_sum`.
        """
        places = np.flatnonzero(np.isin(self.of_column, numbers))
        chosen = gram[np.ix_(places, places)]
        basis = reduced_basis(chosen)
        if not len(basis):
            return False
        try:
            short = short_vectors(basis @ chosen @ basis.T, 2 * self.tables.minimum - 1)
        except TooManySums:
            return True
        return len(short) > 0


def _within(both: NDArray[np.float64], known: NDArray[np.float64]) -> Floats:
    """Return the products of the parts that lie in what is known."""
    if not both.shape[1]:
        return np.zeros((len(both), len(both)))
    return np.asarray(both @ np.linalg.pinv(known) @ both.T)
