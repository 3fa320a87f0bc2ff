"""Invent results of places, groups and items for the attack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reports.suppression.tables import UNKNOWN, GroupCounts, Integers, PlaceTree

MINIMUMS = (5, 8, 10, 15)
MEASURES = 2


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
class Hierarchy:
    tree: PlaceTree
    groups: GroupCounts
    items: dict[str, Integers]
    minimum: int
    # Together they are an essential.
    measures: tuple[Measure, ...] = ()
    # Who of the people have finished, everyone and by grade.
    finished: Integers | None = None


def draw(generator: np.random.Generator) -> Hierarchy:
    """Invent up to four districts with up to five schools each, grades and subgroups.

    Some schools are tiny, some have no people in a grade, some categories are rare,
    and some subgroups are small.
    """
    districts = int(generator.integers(1, 5))
    parents = [-1, *([0] * districts)]
    for district in range(1, districts + 1):
        parents += [district] * int(generator.integers(1, 6))
    sizes = [
        int(generator.integers(1, 5)),
        *generator.integers(2, 5, size=int(generator.integers(0, 3))).tolist(),
    ]
    categories = generator.integers(3, 7, size=3).tolist()
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
    shape = (len(parents), ends[-1])
    people = np.zeros(shape, dtype=np.int64)
    invited = np.full(shape, UNKNOWN)
    # Rosters name schools and grades, and no other attribute.
    public = [0, *attributes[0]]
    invited[:, public] = 0
    items = [np.zeros((*shape, size), dtype=np.int64) for size in categories]
    shares = [
        generator.dirichlet(np.full(size, generator.choice([0.3, 1.0, 3.0])))
        for size in categories
    ]
    popular = [generator.dirichlet(np.full(size, 0.8)) for size in sizes]
    mean_size = float(generator.choice([40, 100, 300]))
    tiny_schools = float(generator.choice([0, 0.1, 0.3]))
    finished = np.zeros(shape, dtype=np.int64)
    for leaf in tree.leaves:
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
        for of_person in groups:
            np.add.at(people[leaf], of_person[present], 1)
        done = present & (generator.random(size) < generator.uniform(0.6, 1.0))
        for of_person in groups[:2]:
            np.add.at(invited[leaf], of_person, 1)
            np.add.at(finished[leaf], of_person[done], 1)
        for counts, share in zip(items, shares, strict=True):
            answers = generator.choice(len(share), size=size, p=share)
            for of_person in groups:
                np.add.at(counts[leaf], (of_person[present], answers[present]), 1)
    minimum = int(generator.choice(MINIMUMS))
    measures = tuple(
        draw_measure(generator, tree, people[:, 0], f"item_{number}")
        for number in range(1, min(len(items), MEASURES) + 1)
    )
    for place in range(len(parents) - 1, 0, -1):
        for measure in measures:
            measure.people[parents[place]] += measure.people[place]
            measure.sums[parents[place]] += measure.sums[place]
        for numbers in (people, finished, *items):
            numbers[parents[place]] += numbers[place]
        invited[parents[place], public] += invited[place, public]
    return Hierarchy(
        tree,
        GroupCounts(attributes, people, invited),
        {f"item_{number}": counts for number, counts in enumerate(items, 1)},
        minimum,
        measures,
        finished,
    )


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
