"""The attacker finds what is not protected, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from provisioning.suppression_attack.attacker import Publication, unprotected
from provisioning.suppression_attack.hierarchies import draw, draw_small
from provisioning.suppression_attack.optimum import fewest_hidden
from reports.suppression.results import decide, primary_groups


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


def test_without_protection_the_attacker_recovers_numbers():
    hierarchy = draw_small(np.random.default_rng(2))
    recovered, _ = attacked(hierarchy, unprotected(hierarchy))
    assert recovered > 0
    decision = decide(
        hierarchy.tree, hierarchy.groups, hierarchy.items, hierarchy.minimum
    )
    assert attacked(hierarchy, decision) == (0, 0)


def test_little_more_is_hidden_than_the_optimum():
    hierarchy = draw_small(np.random.default_rng(2))
    primary = primary_groups(hierarchy.groups, hierarchy.minimum)
    decision = decide(
        hierarchy.tree, hierarchy.groups, hierarchy.items, hierarchy.minimum
    )
    hidden = decision.groups.sum() + sum(each.sum() for each in decision.items.values())
    fewest = fewest_hidden(hierarchy, primary)
    assert primary.sum() * 2 < fewest
    assert hidden <= 1.5 * fewest
