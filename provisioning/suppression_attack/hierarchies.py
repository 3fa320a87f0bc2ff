"""Invent results of places, groups and items for the attack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from reports.suppression.tables import (
    EVERYONE,
    UNKNOWN,
    GroupCounts,
    Integers,
    Mask,
    PlaceTree,
    Precedent,
)

MINIMUMS = (5, 8, 10, 15)
MEASURES = 2
# Shares of people who leave before the next wave; as many come.
LEAVING = (0.0, 0.02, 0.05, 0.1)


@dataclass(frozen=True)
class Measure:
    """Raw scores of everyone at each place; a measure is hidden with its item."""

    item: str
    # Who have the measure, and the sums of their raw scores from 0 to `most`.
    people: Integers
    sums: Integers
    most: int
    # Of the scale, for each raw score.
    points: float


@dataclass(frozen=True)
class SchoolPeople:
    """The people of a school: [attribute, person] their columns, [item, person]."""

    groups: Integers
    answers: Integers
    # Who have answered, and who of them have finished.
    present: Mask
    done: Mask
    # Who have come since the wave before.
    came: Mask

    def with_others(
        self, generator: np.random.Generator, leaving: float
    ) -> SchoolPeople:
        """Return the next wave's people: some leave, and about as many come.

        Those who come have the groups and answers of somebody in the school.
        """
        size = len(self.present)
        went = generator.random(size) < leaving
        # Somebody answers in each school, as in the first wave.
        went[0] = False
        others = generator.integers(0, size, size=generator.binomial(size, leaving))
        chosen = np.concatenate([np.flatnonzero(~went), others])
        return SchoolPeople(
            self.groups[:, chosen],
            self.answers[:, chosen],
            self.present[chosen],
            self.done[chosen],
            np.arange(len(chosen)) >= (~went).sum(),
        )


@dataclass(frozen=True)
class Hierarchy:
    tree: PlaceTree
    groups: GroupCounts
    items: dict[str, Integers]
    minimum: int
    # Together they are an essential.
    measures: tuple[Measure, ...] = ()
    # Who of the people have finished, everyone and by grade.
    finished: Integers | None = None
    # What was hidden of the same people before.
    precedent: Precedent | None = None
    # By place.
    schools: Mapping[int, SchoolPeople] = field(default_factory=dict)
    # Counts of the items, of people who were not in the wave before.
    came: Mapping[str, Integers] = field(default_factory=dict)


def draw(
    generator: np.random.Generator,
    *,
    districts: int = 4,
    schools: int = 5,
    items: int = 3,
) -> Hierarchy:
    """Invent up to so many districts with up to so many schools, grades and subgroups.

    Some schools are tiny, some have no people in a grade, some categories are rare,
    and some subgroups are small.
    """
    number = int(generator.integers(1, districts + 1))
    parents = [-1, *([0] * number)]
    for district in range(1, number + 1):
        parents += [district] * int(generator.integers(1, schools + 1))
    sizes = [
        int(generator.integers(1, 5)),
        *generator.integers(2, 5, size=int(generator.integers(0, 3))).tolist(),
    ]
    categories = generator.integers(3, 7, size=items).tolist()
    return fill(generator, parents, sizes, categories)


def draw_small(generator: np.random.Generator) -> Hierarchy:
    """Invent up to four schools, for which the optimum can be found."""
    parents = [-1, *([0] * int(generator.integers(2, 5)))]
    sizes = generator.integers(2, 4, size=int(generator.integers(1, 3))).tolist()
    return fill(generator, parents, sizes, [3])


def fill(
    generator: np.random.Generator,
    parents: list[int],
    sizes: list[int],
    categories: list[int],
) -> Hierarchy:
    """Invent people and their answers, of attributes and items of these sizes."""
    tree = PlaceTree(np.array(parents))
    ends = np.cumsum([1, *sizes]).tolist()
    attributes = tuple(
        tuple(range(start, end)) for start, end in zip(ends, ends[1:], strict=False)
    )
    shares = [
        generator.dirichlet(np.full(size, generator.choice([0.3, 1.0, 3.0])))
        for size in categories
    ]
    popular = [generator.dirichlet(np.full(size, 0.8)) for size in sizes]
    mean_size = float(generator.choice([40, 100, 300]))
    tiny_schools = float(generator.choice([0, 0.1, 0.3]))
    schools: dict[int, SchoolPeople] = {}
    for leaf in tree.leaves.tolist():
        size = 10 + int(generator.exponential(mean_size))
        if generator.random() < tiny_schools:
            size = int(generator.integers(1, 15))
        groups = [np.zeros(size, dtype=np.int64)]
        for columns, share in zip(attributes, popular, strict=True):
            here = generator.dirichlet(20 * share + 0.05)
            groups.append(
                generator.choice(columns, size=size, p=0.9 * here + 0.1 / len(here))
            )
        present = generator.random(size) < generator.uniform(0.3, 1.0)
        # Schools without an answer are in no results.
        present[0] = True
        done = present & (generator.random(size) < generator.uniform(0.6, 1.0))
        answers = [generator.choice(len(share), size=size, p=share) for share in shares]
        schools[leaf] = SchoolPeople(
            *(np.array(groups), np.array(answers), present, done),
            np.zeros(size, dtype=bool),
        )
    minimum = int(generator.choice(MINIMUMS))
    hierarchy = count(tree, attributes, categories, schools, minimum)
    everyone = hierarchy.groups.people[:, EVERYONE]
    measures = tuple(
        draw_measure(generator, tree, everyone, f"item_{number}")
        for number in range(1, min(len(categories), MEASURES) + 1)
    )
    for measure in measures:
        add_up(tree, measure.people, measure.sums)
    return replace(hierarchy, measures=measures)


def count(
    tree: PlaceTree,
    attributes: tuple[tuple[int, ...], ...],
    categories: list[int],
    schools: Mapping[int, SchoolPeople],
    minimum: int,
) -> Hierarchy:
    """Count the people of the schools, of items with so many categories."""
    shape = (len(tree), 1 + sum(map(len, attributes)))
    people, finished = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    invited = np.full(shape, UNKNOWN)
    # Rosters name schools and grades, and no other attribute.
    public = [EVERYONE, *attributes[0]]
    invited[:, public] = 0
    items = [np.zeros((*shape, size), dtype=np.int64) for size in categories]
    came = [np.zeros_like(counts) for counts in items]
    for leaf, school in schools.items():
        for of_person in school.groups:
            np.add.at(people[leaf], of_person[school.present], 1)
        for of_person in school.groups[:2]:
            np.add.at(invited[leaf], of_person, 1)
            np.add.at(finished[leaf], of_person[school.done], 1)
        counted = (items, school.present), (came, school.present & school.came)
        for tables, chosen in counted:
            for counts, answers in zip(tables, school.answers, strict=True):
                for of_person in school.groups:
                    cells = of_person[chosen], answers[chosen]
                    np.add.at(counts[leaf], cells, 1)
    add_up(tree, people, finished, *items, *came)
    public_numbers = invited[:, public]
    add_up(tree, public_numbers)
    invited[:, public] = public_numbers
    return Hierarchy(
        tree,
        GroupCounts(attributes, people, invited),
        {f"item_{number}": counts for number, counts in enumerate(items, 1)},
        minimum,
        finished=finished,
        schools=schools,
        came={f"item_{number}": counts for number, counts in enumerate(came, 1)},
    )


def add_up(tree: PlaceTree, *tables: Integers) -> None:
    """Add the numbers of each place to the place around it."""
    for place in range(len(tree) - 1, 0, -1):
        for numbers in tables:
            numbers[tree.parents[place]] += numbers[place]


def next_wave(hierarchy: Hierarchy, generator: np.random.Generator) -> Hierarchy:
    """Return the next wave, in which a few people are others.

    Nobody else changes a group or an answer, so that the attacker knows more of them
    than anybody could.
    """
    attributes = hierarchy.groups.attributes
    leaving = float(generator.choice(LEAVING))
    schools = {
        leaf: school.with_others(generator, leaving)
        for leaf, school in hierarchy.schools.items()
    }
    categories = [counts.shape[2] for counts in hierarchy.items.values()]
    minimum = hierarchy.minimum
    return count(hierarchy.tree, attributes, categories, schools, minimum)


def draw_measure(
    generator: np.random.Generator, tree: PlaceTree, people: Integers, item: str
) -> Measure:
    """Invent the raw scores in each school, where some people have answered nothing."""
    most = int(generator.integers(2, 16))
    measured, sums = np.zeros_like(people), np.zeros_like(people)
    for leaf in tree.leaves:
        share = float(generator.choice([0.1, 0.5, 0.9, 1.0]))
        measured[leaf] = generator.binomial(people[leaf], share)
        chance = generator.uniform(0.2, 0.8)
        sums[leaf] = generator.binomial(most, chance, measured[leaf]).sum()
    return Measure(item, measured, sums, most, float(generator.uniform(5, 60)))
