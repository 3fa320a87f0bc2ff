"""Hide groups of which sums with groups of other attributes tell of a few people.

Within an attribute, groups add up to everyone, and `results` hides so many that no few
people are left. Groups of several attributes overlap: economically disadvantaged
people less those with free lunch are those with reduced lunch. Here, further groups
are hidden in a school until no sum of its groups isolates fewer people than the
minimum (`lattice`). An attribute that repeats others, so that schools show more groups
without it, is not shown by school at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.suppression.lattice import (
    Floats,
    TooManySums,
    light_sums,
    reduced_basis,
    short_sums,
    short_vectors,
)
from reports.suppression.results import (
    few_answers,
    hide_groups,
    small_places,
)
from reports.suppression.tables import (
    EVERYONE,
    Decision,
    GroupCounts,
    Integers,
    Mask,
    PlaceTree,
    Precedent,
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
        tree: PlaceTree,
        groups: GroupCounts,
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
        position = None if item is None else list(self.items).index(item)
        gram = np.zeros((len(columns), len(columns)))
        people = answered = 0
        for school in tree.below(place).tolist():
            of_school = self.memberships.get(school)
            if of_school is None:
                continue
            weights = of_school.people
            if position is not None:
                weights = of_school.answered[:, position]
                people += int(of_school.people.sum())
                answered += int(weights.sum())
            summed = of_school.members[:, columns].astype(float)
            summed[:, ~decision.counted[school, of_attribute]] = 0
            own = [column for column in self.shown[school] if column not in columns]
            shown = of_school.members[:, own].astype(float)
            both = summed.T @ (weights[:, None] * shown)
            gram += summed.T @ (weights[:, None] * summed)
            gram -= both @ np.linalg.pinv(shown.T @ (weights[:, None] * shown)) @ both.T
        if position is not None and answered > MOSTLY_ANSWERED * people:
            return False
        least = self.minimum if position is not None else 2 * self.minimum
        basis = reduced_basis(gram)
        try:
            sums = short_vectors(basis @ gram @ basis.T, least - 1)
        except TooManySums:
            return True
        return len(sums) > 0


def dependent_groups(
    tree: PlaceTree,
    groups: GroupCounts,
    memberships: Mapping[int, Memberships],
    items: Sequence[str],
    minimum: int,
    precedent: Precedent,
) -> DependentGroups:
    """Return which groups of schools have to be hidden for others.

    `memberships` are those of schools, by place.
    """
    search = Search(tree, groups, memberships, minimum, precedent)
    repeating = search.repeating_attributes()
    dependent = search.of_attributes(repeating)
    of_items = {name: np.zeros_like(dependent) for name in items}
    shown = {}
    for place in search.places:
        search.hide(place, dependent)
        shown[place] = search.shown(place, dependent)
        search.hide_items(place, shown[place], of_items)
    return DependentGroups(
        *(dependent, of_items, repeating),
        {place: memberships[place] for place in search.places},
        *(shown, minimum),
    )


class Search:
    """Looks for dependent groups in one school after the other."""

    def __init__(
        self,
        tree: PlaceTree,
        groups: GroupCounts,
        memberships: Mapping[int, Memberships],
        minimum: int,
        precedent: Precedent,
    ) -> None:
        self.groups = groups
        self.memberships = memberships
        self.minimum = minimum
        self.precedent = precedent
        self.small = groups.too_small(minimum) | precedent.again.groups
        hidden = small_places(tree, groups, minimum, precedent)
        self.places = [
            place
            for place in tree.leaves.tolist()
            if place in memberships and not hidden[place]
        ]

    def repeating_attributes(self) -> list[int]:
        """Return the attributes without which fewer groups have to be hidden."""
        step = max(1, len(self.places) // SAMPLE)
        sample = self.places[::step]
        repeating: list[int] = []
        most = self.shown_groups(sample, repeating)
        while True:
            tried = [
                (self.shown_groups(sample, [*repeating, number]), number)
                for number in range(len(self.groups.attributes))
                if number not in repeating
            ]
            best = max(tried, default=(0, 0))
            if best[0] <= most:
                return repeating
            most = best[0]
            repeating.append(best[1])

    def shown_groups(self, places: Sequence[int], without: Sequence[int]) -> int:
        """Return how many groups these schools show without some attributes."""
        dependent = self.of_attributes(without)
        for place in places:
            self.hide(place, dependent)
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
            hidden = hide_groups(
                self.groups, place, attribute, small, self.minimum, self.precedent
            )
            has_people = self.groups.people[place, attribute] > 0
            columns += attribute[~hidden & has_people].tolist()
        return columns

    def hide(self, place: int, dependent: Mask) -> None:
        """Hide groups of a school until no sum isolates a few people."""
        of_place = self.memberships[place]
        while True:
            columns = self.shown(place, dependent)
            members = of_place.members[:, columns]
            try:
                sums = light_sums(members, of_place.people, self.minimum)
            except TooManySums:
                sums = np.ones((1, len(columns)), dtype=np.int64)
            if not len(sums):
                return
            dependent[place, self.worst(place, columns, sums)] = True

    def hide_items(
        self, place: int, columns: Sequence[int], of_items: Mapping[str, Mask]
    ) -> None:
        """Hide items in groups of which sums are of a few people who answered."""
        of_place = self.memberships[place]
        members = of_place.members[:, columns].astype(float)
        answered = of_place.answered.astype(float)
        people, answers = of_place.people.sum(), answered.sum(axis=0)
        # Sums of few who answered an item are of no more people than these.
        most = people - answers + self.minimum - 1
        is_answered = answers >= MOSTLY_ANSWERED * people
        longest = most[is_answered].max(initial=LONGEST * (self.minimum - 1))
        try:
            sums = short_sums(members, of_place.people, longest)
        except TooManySums:
            is_answered[:] = False
        else:
            size = ((sums @ members.T) != 0).astype(float) @ answered
        # Groups that hide the item for themselves: [group, item].
        few = few_answers(members.T @ answered, self.minimum)
        everyone = columns.index(EVERYONE)
        for number, name in enumerate(of_items):
            shown = ~few[:, number]
            if not shown[everyone]:
                continue
            if is_answered[number]:
                light = sums[few_answers(size[:, number], self.minimum)]
                # Those that hide the item for themselves, and that no others tell.
                is_single = np.count_nonzero(light, axis=1) == 1
                hidden = (light[:, shown] == 0).all(axis=1)
                if (is_single & hidden).all() and are_apart(
                    members, shown, answered[:, number]
                ):
                    continue
            # Once more after each group, as the others may have the same sums.
            while len(light := self.light_sums(members, shown, answered[:, number])):
                worst = self.worst(place, columns, light)
                of_items[name][place, worst] = True
                shown[columns.index(worst)] = False

    def light_sums(self, members: Floats, shown: Mask, answered: Floats) -> Integers:
        """Return the sums of groups that show an item, of few who answered it."""
        try:
            light = light_sums(members[:, shown], answered, self.minimum)
        except TooManySums:
            # All of these groups hide it.
            light = np.eye(int(shown.sum()), dtype=np.int64)[1:]
        sums = np.zeros((len(light), len(shown)), dtype=np.int64)
        sums[:, shown] = light
        return sums

    def worst(self, place: int, columns: Sequence[int], sums: Integers) -> int:
        """Return the group that is in most of the sums; of several, the smallest."""
        times = np.count_nonzero(sums, axis=0)
        times[columns.index(EVERYONE)] = 0
        people = self.groups.people[place, columns]
        return columns[int(np.lexsort((people, -times))[0])]


def are_apart(members: Floats, shown: Mask, people: Floats) -> bool:
    """Return whether no hidden group is a sum of shown ones, with any factors."""
    gram = (members * people[:, None]).T @ members
    both = gram[np.ix_(~shown, shown)]
    left = gram[np.ix_(~shown, ~shown)]
    left = left - both @ np.linalg.pinv(gram[np.ix_(shown, shown)]) @ both.T
    return bool((left.diagonal() > 0.5).all())
