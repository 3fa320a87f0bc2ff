"""Hide groups of which sums with groups of other attributes tell of a few people.

Within an attribute, groups add up to everyone, and `results` hides so many that no few
people are left. Groups of several attributes overlap: economically disadvantaged
people less those with free lunch are those with reduced lunch. Here, further groups
are hidden in a school until no sum of its groups isolates fewer people than the
minimum (`lattice`). An attribute that repeats others, so that schools show more groups
without it, is not shown by school at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.suppression.attributes import hide_groups
from reports.suppression.candidates import few_answers
from reports.suppression.lattice import (
    LARGEST_WEIGHT,
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
from reports.suppression.places import small_places
from reports.suppression.tables import (
    EVERYONE,
    Decision,
    Integers,
    Mask,
    ReleasedTables,
)

# Schools from which it is estimated which attributes repeat others.
SAMPLE = 50
# Sums of so many times the minimum of people are looked at for each item.
LONGEST = 4
# Items that so many people have answered are looked at together.
MOSTLY_ANSWERED = 0.6


@dataclass(frozen=True)
class Memberships:
    """The people of a school by their patterns of groups."""

    # [pattern, column]
    members: Mask
    # [pattern]
    people: Integers
    # [pattern, item], in the order of the survey.
    answered: Integers


@dataclass(frozen=True)
class DependentGroups:
    """Groups to hide, [place, column], and items in further groups."""

    groups: Mask
    items: Mapping[str, Mask]
    # Attributes that repeat others.
    repeating: Sequence[int]
    # By place of the schools.
    memberships: Mapping[int, Memberships]
    # The columns that each school shows at most.
    shown: Mapping[int, Sequence[int]]
    minimum: int

    def isolate_in_sum(
        self,
        tables: ReleasedTables,
        decision: Decision,
        cell: tuple[int, int],
        item: str | None = None,
    ) -> bool:
        """Return whether a sum of schools that show no groups isolates a few people.

        Together with what the schools show, and with such sums of attributes before
        this one. The squared length of what is orthogonal to the schools' own figures
        is the least number of people, if no weight is larger than one; so that of
        items that most people answer, twice the minimum is asked for, and those of
        other items are calculated.
        """
        tree, groups = tables.tree, tables.groups
        place, number = cell
        attributes = [
            each
            for each in range(number + 1)
            if each == number
            or decision.undivided[place, each]
            and not decision.groups[place, list(groups.attributes[each])].any()
        ]
        columns = [column for each in attributes for column in groups.attributes[each]]
        of_attribute = np.repeat(
            attributes, [len(groups.attributes[each]) for each in attributes]
        )
        schools = {
            school: self.memberships[school]
            for school in tree.below(place).tolist()
            if school in self.shown
        }
        position = None if item is None else list(self.items).index(item)
        if position is not None and is_mostly_answered(schools.values(), position):
            return False
        gram = np.zeros((len(columns), len(columns)))
        for school, of_school in schools.items():
            weights = of_school.people
            if position is not None:
                weights = of_school.answered[:, position]
            summed = of_school.members[:, columns].astype(float)
            summed[:, ~decision.counted[school, of_attribute]] = 0
            shown_columns = [
                column for column in self.shown[school] if column not in columns
            ]
            shown = of_school.members[:, shown_columns].astype(float)
            both = summed.T @ (weights[:, None] * shown)
            gram += summed.T @ (weights[:, None] * summed)
            gram -= both @ np.linalg.pinv(shown.T @ (weights[:, None] * shown)) @ both.T
        least = self.minimum if position is not None else 2 * self.minimum
        basis = reduced_basis(gram)
        try:
            sums = short_vectors(basis @ gram @ basis.T, least - 1)
        except TooManySums:
            return True
        return len(sums) > 0


def is_mostly_answered(schools: Iterable[Memberships], position: int) -> bool:
    """Return whether most people of these schools have answered an item."""
    people = answered = 0
    for school in schools:
        people += int(school.people.sum())
        answered += int(school.answered[:, position].sum())
    return answered > MOSTLY_ANSWERED * people


def dependent_groups(
    tables: ReleasedTables,
    memberships: Mapping[int, Memberships],
    items: Sequence[str],
) -> DependentGroups:
    """Return which groups of schools have to be hidden for others.

    `memberships` are those of schools, by place.
    """
    search = Search(tables, memberships)
    repeating = search.repeating_attributes()
    dependent = search.of_attributes(repeating)
    of_items = {name: np.zeros_like(dependent) for name in items}
    shown = {}
    for place in search.places:
        sums = search.sums_of_few(place, dependent, of_items=True)
        search.hide(place, dependent, sums)
        shown[place] = search.shown(place, dependent)
        search.hide_items(place, shown[place], of_items, sums)
    return DependentGroups(
        *(dependent, of_items, repeating),
        {place: memberships[place] for place in search.places},
        *(shown, tables.minimum),
    )


class Search:
    """Looks for dependent groups in one school after the other."""

    def __init__(
        self,
        tables: ReleasedTables,
        memberships: Mapping[int, Memberships],
    ) -> None:
        self.tables, self.memberships = tables, memberships
        self.groups, self.minimum = tables.groups, tables.minimum
        forced = tables.earlier.forced.groups
        self.small = tables.groups.too_small(tables.minimum) | forced
        hidden = small_places(tables)
        self.places = [
            place
            for place in tables.tree.leaves.tolist()
            if place in memberships and not hidden[place]
        ]

    def repeating_attributes(self) -> list[int]:
        """Return the attributes without which schools show no fewer groups.

        A whole column is rather left out than groups of several ones.
        """
        step = max(1, len(self.places) // SAMPLE)
        sample = self.places[::step]
        nothing = self.of_attributes([])
        alone = {column for place in sample for column in self.shown(place, nothing)}
        repeating: list[int] = []
        most = self.shown_groups(sample, repeating)
        while True:
            tried = [
                (self.shown_groups(sample, [*repeating, number]), number)
                for number, columns in enumerate(self.groups.attributes)
                if number not in repeating and not alone.isdisjoint(columns)
            ]
            best = max(tried, default=(-1, 0))
            if best[0] < most:
                return repeating
            most = best[0]
            repeating.append(best[1])

    def shown_groups(self, places: Sequence[int], without: Sequence[int]) -> int:
        """Return how many groups these schools show without some attributes."""
        dependent = self.of_attributes(without)
        for place in places:
            self.hide(place, dependent, self.sums_of_few(place, dependent))
        return sum(len(self.shown(place, dependent)) for place in places)

    def of_attributes(self, attributes: Sequence[int]) -> Mask:
        """Return all groups of these attributes: [place, column]."""
        columns = [it for each in attributes for it in self.groups.attributes[each]]
        mask = np.zeros(self.groups.people.shape, dtype=bool)
        mask[:, columns] = True
        return mask

    def shown(self, place: int, dependent: Mask) -> list[int]:
        """Return the columns that a school shows."""
        small = self.small[place] | dependent[place]
        columns = [EVERYONE]
        for attribute in map(np.array, self.groups.attributes):
            hidden = hide_groups(self.tables, place, attribute, small)
            has_people = self.groups.people[place, attribute] > 0
            columns += attribute[~hidden & has_people].tolist()
        return columns

    def sums_of_few(
        self, place: int, dependent: Mask, *, of_items: bool = False
    ) -> Integers | None:
        """Return sums of shown groups that may be of few people: [sum, column].

        With `of_items`, also those of few who answered an item that most people have
        answered. None if there are too many.
        """
        of_place = self.memberships[place]
        columns = self.shown(place, dependent)
        members, people = of_place.members[:, columns], of_place.people
        longest = LARGEST_WEIGHT**2 * (self.minimum - 1)
        fewest = people
        if of_items:
            # Sums of few who answered an item are of no more people than these.
            everyone, answers = people.sum(), of_place.answered.sum(axis=0)
            mostly = answers >= MOSTLY_ANSWERED * everyone
            unanswered = (everyone - answers)[mostly]
            longest = max(longest, unanswered.max(initial=0) + self.minimum - 1)
            # Of each pattern, as if all of these people had not answered one item.
            answered = of_place.answered[:, mostly]
            fewest = np.minimum(people, answered.min(axis=1, initial=people.max()))
        if not may_isolate(
            members, np.where(people > 0, fewest.clip(1), 0), self.minimum
        ):
            return np.zeros((0, of_place.members.shape[1]), dtype=np.int64)
        try:
            sums = short_sums(members, people, longest)
        except TooManySums:
            return None
        return in_columns(sums, columns, of_place.members.shape[1])

    def hide(self, place: int, dependent: Mask, sums: Integers | None) -> None:
        """Hide groups of a school until no sum isolates a few people."""
        of_place = self.memberships[place]
        people = self.groups.people[place]
        if sums is None:
            columns = np.array(self.shown(place, dependent))
            dependent[place, columns[columns != EVERYONE]] = True
            return
        preferred = self.tables.earlier.preferred.groups[place]
        members = of_place.members.astype(float)
        gram = scalar_products(members, of_place.people)
        light = few_answers(sizes(sums, members, of_place.people), self.minimum)
        while True:
            columns = np.array(self.shown(place, dependent))
            group = group_to_hide(gram, sums[light], columns, people, preferred)
            if group is None:
                return
            dependent[place, group] = True

    def hide_items(
        self,
        place: int,
        shown: Sequence[int],
        of_items: Mapping[str, Mask],
        sums: Integers | None,
    ) -> None:
        """Hide items in groups of which sums are of a few people who answered."""
        of_place = self.memberships[place]
        members, answered = of_place.members.astype(float), of_place.answered
        # People who answered: of each group, and of each sum.
        of_groups = np.rint(members.T @ answered).astype(np.int64)
        few = few_answers(of_groups, self.minimum)
        light = np.zeros((0, answered.shape[1]), dtype=bool)
        if sums is not None:
            light = few_answers(sizes(sums, members, answered), self.minimum)
        mostly = of_groups[EVERYONE] >= MOSTLY_ANSWERED * of_place.people.sum()
        for number, (name, mask) in enumerate(of_items.items()):
            if sums is not None and mostly[number] and not light[:, number].any():
                continue
            columns = np.array([each for each in shown if not few[each, number]])
            if EVERYONE not in columns:
                continue
            if sums is not None and mostly[number]:
                of_item = sums[light[:, number]]
            else:
                of_item = self.sums_of_few_who_answered(place, columns, number)
            if not len(of_item):
                continue
            gram = scalar_products(members, answered[:, number])
            preferred = self.tables.earlier.preferred.of_item(name)[place]
            while True:
                group = group_to_hide(
                    *(gram, of_item, columns, of_groups[:, number], preferred)
                )
                if group is None:
                    break
                mask[place, group] = True
                columns = columns[columns != group]

    def sums_of_few_who_answered(
        self, place: int, columns: Integers, item: int
    ) -> Integers:
        """Return sums that isolate few people who answered an item: [sum, column]."""
        of_place = self.memberships[place]
        members = of_place.members[:, columns]
        try:
            sums = light_sums(members, of_place.answered[:, item], self.minimum)
        except TooManySums:
            # All of these groups hide it.
            sums = np.eye(len(columns), dtype=np.int64)[columns != EVERYONE]
        return in_columns(sums, columns, of_place.members.shape[1])


def in_columns(
    sums: Integers, columns: Sequence[int] | Integers, number: int
) -> Integers:
    """Return sums of some columns as those of all: [sum, column]."""
    spread = np.zeros((len(sums), number), dtype=np.int64)
    spread[:, columns] = sums
    return spread
