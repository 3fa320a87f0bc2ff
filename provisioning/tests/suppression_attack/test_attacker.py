"""The attacker finds what is not protected, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from provisioning.suppression_attack.attacker import Publication, unprotected
from provisioning.suppression_attack.hierarchies import (
    Hierarchy,
    Measure,
    draw,
    draw_small,
)
from provisioning.suppression_attack.means import PublishedMeans
from provisioning.suppression_attack.optimum import fewest_hidden
from reports.suppression.results import decide, primary_groups
from reports.suppression.tables import UNKNOWN, GroupCounts, PlaceTree


def attacked(hierarchy, decision):
    """Return how many numbers were recovered, and how many were narrowed."""
    publication = Publication(hierarchy, decision)
    generator = np.random.default_rng(1)
    outcome = publication.attack_groups(generator)
    for name in hierarchy.items:
        outcome.add(publication.attack_item(name, generator))
    return outcome.recovered, outcome.narrowed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_recovered(seed):
    hierarchy = draw(np.random.default_rng([3, seed]))
    decision = decide(
        hierarchy.tree, hierarchy.groups, hierarchy.items, hierarchy.minimum
    )
    assert attacked(hierarchy, decision) == (0, 0)


@pytest.mark.parametrize(
    ("seed", "rule"), [(17, "tells_groups"), (52, "tells_items"), (14, "tells_items")]
)
def test_sums_of_schools_that_show_no_groups_are_attacked(monkeypatch, seed, rule):
    hierarchy = draw(np.random.default_rng([1, seed]))
    tables = hierarchy.tree, hierarchy.groups, hierarchy.items, hierarchy.minimum
    assert attacked(hierarchy, decide(*tables)) == (0, 0)
    monkeypatch.setattr(f"reports.suppression.results.{rule}", lambda *_: False)
    recovered, _ = attacked(hierarchy, decide(*tables))
    assert recovered > 0


def test_without_protection_the_attacker_recovers_numbers():
    hierarchy = draw_small(np.random.default_rng(8))
    recovered, _ = attacked(hierarchy, unprotected(hierarchy))
    assert recovered > 0
    decision = decide(
        hierarchy.tree, hierarchy.groups, hierarchy.items, hierarchy.minimum
    )
    assert attacked(hierarchy, decision) == (0, 0)


@pytest.fixture
def two_schools():
    """40 people, of whom all have the measure, and 20, of whom 6 have it."""
    tree = PlaceTree(np.array([-1, 0, 1, 1]))
    people = np.array([[60], [60], [40], [20]])
    item = np.array([[[33, 27]], [[33, 27]], [[22, 18]], [[11, 9]]])
    measured, sums = np.array([46, 46, 40, 6]), np.array([283, 283, 250, 33])
    return Hierarchy(
        tree,
        GroupCounts((), people, np.full(people.shape, UNKNOWN)),
        {"item_1": item},
        10,
        (Measure("item_1", measured, sums, 12, 30.0),),
    )


def test_the_mean_of_few_people_is_in_no_other_mean(two_schools):
    decision = decide(
        two_schools.tree, two_schools.groups, two_schools.items, two_schools.minimum
    )
    outcome = PublishedMeans.of(two_schools, decision).attack()
    assert (outcome.cells, outcome.recovered, outcome.narrowed) == (1, 0, 0)
    # In the district's mean they are recovered, from rounded scores.
    outcome = PublishedMeans.unprotected(two_schools).attack()
    assert (outcome.cells, outcome.recovered) == (1, 1)


def test_a_rough_scale_leaves_candidates(two_schools):
    [measure] = two_schools.measures
    rough = replace(two_schools, measures=(replace(measure, points=2.0),))
    published = PublishedMeans.unprotected(rough)
    # Without the mean of the benchmark, which is not rounded.
    matrix, low, high = published.constraints
    published.__dict__["constraints"] = matrix[1:], low[1:], high[1:]
    assert published.width(1) >= 2


def test_little_more_is_hidden_than_the_optimum():
    hierarchy = draw_small(np.random.default_rng(8))
    primary = primary_groups(hierarchy.groups, hierarchy.minimum)
    decision = decide(
        hierarchy.tree, hierarchy.groups, hierarchy.items, hierarchy.minimum
    )
    hidden = decision.groups.sum() + sum(each.sum() for each in decision.items.values())
    fewest = fewest_hidden(hierarchy, primary)
    assert primary.sum() * 2 < fewest
    assert hidden <= 1.5 * fewest
