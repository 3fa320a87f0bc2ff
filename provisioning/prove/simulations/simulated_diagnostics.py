"""Simulate measures with and without a fault, and diagnose them. Runs in .venv.

Returns shares of measures. "False" are measures without a fault in which one is found,
"power" those with a fault that is found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reports.rasch import ResponseTable, calibrate, dif, measure_people
from reports.rasch.dependence import (
    MOST_EIGENVALUE,
    first_contrast,
    local_dependence,
)
from reports.rasch.persons import category_chances
from reports.rasch.responses import Floats, Integers

LOCATIONS = np.linspace(-0.8, 0.8, 6)
STEPS = np.array([-1.2, 0.0, 1.2])
# How much lower people of the focal group are, and how much harder an item is for them.
IMPACT, MOVED = 0.5, 0.8
# How often a repeated item has the same answer.
REPEATED = 0.5
# The correlation of two dimensions.
RELATED = 0.3


def simulate(*, simulations: int) -> dict[str, float]:
    def share(has_finding: Callable[[np.random.Generator], bool]) -> float:
        findings = [has_finding(np.random.default_rng(n)) for n in range(simulations)]
        return round(float(np.mean(findings)), 4)

    return {
        "simulations": simulations,
        "dif_false_200": share(lambda r: bool(different(r, 200))),
        "dif_false_500": share(lambda r: bool(different(r, 500))),
        "dif_false_significant": share(
            lambda r: bool((compared(r, 500).adjusted <= dif.LEVEL).any())
        ),
        "dif_false_unadjusted": share(
            lambda r: bool((compared(r, 500).p_values <= dif.LEVEL).any())
        ),
        "dif_power_200": share(lambda r: 0 in different(r, 200, MOVED)),
        "dif_power_500": share(lambda r: 0 in different(r, 500, MOVED)),
        "dif_false_beside_another": share(
            lambda r: bool(significant(r, purified=True) - {0})
        ),
        "dif_false_unpurified": share(
            lambda r: bool(significant(r, purified=False) - {0})
        ),
        "q3_false_200": share(lambda r: bool(dependent(r, 200))),
        "q3_false_1000": share(lambda r: bool(dependent(r, 1000))),
        "q3_power": share(lambda r: (0, 1) in dependent(r, 1000, repeated=REPEATED)),
        "dimension_false": share(lambda r: eigenvalue(r, 1) > MOST_EIGENVALUE),
        "dimension_power": share(lambda r: eigenvalue(r, RELATED) > MOST_EIGENVALUE),
    }


def answers(
    random: np.random.Generator, measures: Floats, locations: Floats = LOCATIONS
) -> Integers:
    """Return the categories that people of these measures choose."""
    columns = []
    for location in locations:
        chances = category_chances(measures, location + STEPS)
        level = random.random((len(measures), 1))
        columns.append((chances.cumsum(axis=1)[:, :-1] < level).sum(axis=1))
    return np.column_stack(columns)


def table_of(categories: Integers) -> ResponseTable:
    return ResponseTable.of_people(categories)[0]


def compared(
    random: np.random.Generator, people: int, moved: float = 0.0
) -> dif.DifferentialFunctioning:
    """Compare so many people of a focal group with twice as many of another."""
    locations = LOCATIONS.copy()
    locations[0] += moved
    reference = answers(random, random.normal(0, 1.2, 2 * people))
    focal = answers(random, random.normal(-IMPACT, 1.2, people), locations)
    everyone = table_of(np.vstack([reference, focal]))
    return dif.compare_groups(
        table_of(reference), table_of(focal), calibrate(everyone).thresholds
    )


def different(random: np.random.Generator, people: int, moved: float = 0.0) -> set[int]:
    """Return the items of classes B and C."""
    sizes = compared(random, people, moved).sizes
    return {item for item, size in enumerate(sizes) if size != dif.NEGLIGIBLE}


def significant(random: np.random.Generator, *, purified: bool) -> set[int]:
    """Return significant items where one is far harder for 2,000 of 6,000 people.

    Without purification, the mean of all items is that of the groups.
    """
    result = compared(random, 2000, 2 * MOVED)
    adjusted = result.adjusted
    if not purified:
        differences = result.differences - result.differences.mean()
        _, adjusted = dif.significance(differences, result.standard_errors)
    return set(np.flatnonzero(adjusted <= dif.LEVEL).tolist())


def dependent(
    random: np.random.Generator, people: int, *, repeated: float = 0.0
) -> list[tuple[int, int]]:
    categories = answers(random, random.normal(0, 1.2, people))
    same = random.random(people) < repeated
    categories[same, 1] = categories[same, 0]
    table = table_of(categories)
    thresholds = calibrate(table).thresholds
    measures = measure_people(table, thresholds)
    return local_dependence(table, thresholds, measures).dependent_pairs()


def eigenvalue(random: np.random.Generator, related: float) -> float:
    """Return the first contrast of twelve items, of 1,000 people, of two dimensions."""
    covariance = 1.44 * np.array([[1, related], [related, 1]])
    measures = random.multivariate_normal([0, 0], covariance, 1000)
    table = table_of(np.hstack([answers(random, measures[:, half]) for half in (0, 1)]))
    thresholds = calibrate(table).thresholds
    contrast = first_contrast(table, thresholds, measure_people(table, thresholds))
    return contrast.eigenvalue if contrast else float("nan")
