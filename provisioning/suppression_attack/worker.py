"""Attack some hierarchies and print what was found as JSON: SEED FIRST STEP COUNT."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter

import numpy as np

from provisioning.suppression_attack.attacker import Outcome, Publication
from provisioning.suppression_attack.hierarchies import Hierarchy, draw, draw_small
from provisioning.suppression_attack.optimum import fewest_hidden
from reports.suppression.results import decide, primary_groups
from reports.suppression.tables import Decision

# Every so many hierarchies a small one is compared with the optimum, and the items
# of one without protection are attacked.
OPTIMUM_EVERY = 20
UNPROTECTED_EVERY = 10


def main(seed: int, first: int, step: int, count: int) -> Counter[str]:
    figures: Counter[str] = Counter()
    for number in range(first, count, step):
        generator = np.random.default_rng([seed, number])
        hierarchy = draw(generator)
        began = time.process_time()
        decision = decide(
            *(hierarchy.tree, hierarchy.groups, hierarchy.items, hierarchy.minimum)
        )
        milliseconds = (time.process_time() - began) * 1000
        figures["milliseconds_deciding"] += round(milliseconds)
        figures["hierarchies"] += 1
        figures.update(shares(hierarchy, decision))
        figures.update(attack(hierarchy, decision, generator))
        figures.update(
            attack_without_protection(
                hierarchy, generator, with_items=number % UNPROTECTED_EVERY == 0
            )
        )
        if number % OPTIMUM_EVERY == 0:
            figures.update(compare_with_optimum(draw_small(generator)))
    return figures


def shares(hierarchy: Hierarchy, decision: Decision) -> dict[str, int]:
    """Count groups and items, and those that are hidden, and those of small groups."""
    exists = hierarchy.groups.most_people > 0
    primary = primary_groups(hierarchy.groups, hierarchy.minimum)
    tables = 1 + len(decision.items)
    return {
        "cells": int(exists.sum()) * tables,
        "hidden": int(
            decision.groups.sum() + sum(mask.sum() for mask in decision.items.values())
        ),
        "primary": int(primary.sum()) * tables,
        "groups": int(exists.sum()),
        "hidden_groups": int(decision.groups.sum()),
        "strict": sum(
            int((decision.items[name] | rare_above(hierarchy, decision, name)).sum())
            for name in decision.items
        )
        + int(decision.groups.sum()),
    }


def rare_above(hierarchy: Hierarchy, decision: Decision, name: str) -> np.ndarray:
    """Return shown distributions that leave less than three candidates below them.

    They would have to be hidden if hidden counts needed three candidates even where
    the totals that contain them leave fewer; and then others to protect these.
    """
    hidden, counts = decision.items[name], hierarchy.items[name]
    rare = ((counts < 2) | (hierarchy.groups.people[:, :, None] - counts < 2)).any(2)
    parents = hierarchy.tree.parents
    contains = hidden.copy()
    for place in range(len(parents) - 1, -1, -1):
        contains[place, 0] |= contains[place].any()
        if place:
            contains[parents[place]] |= contains[place]
    return contains & rare & (hierarchy.groups.people > 0)


def attack(
    hierarchy: Hierarchy, decision: Decision, generator: np.random.Generator
) -> dict[str, int]:
    publication = Publication(hierarchy, decision.groups, decision.items)
    outcome = publication.attack_groups(generator)
    for name in decision.items:
        outcome.add(publication.attack_item(name, generator))
    return {
        "attacked": outcome.cells,
        "recovered": outcome.recovered,
        "narrowed_below_3": outcome.narrowed,
        "implied_by_totals": outcome.implied,
    }


def attack_without_protection(
    hierarchy: Hierarchy, generator: np.random.Generator, *, with_items: bool
) -> dict[str, int]:
    """Attack results of which only small groups themselves are hidden."""
    primary = primary_groups(hierarchy.groups, hierarchy.minimum)
    publication = Publication(
        hierarchy, primary, dict.fromkeys(hierarchy.items, primary)
    )
    outcome = Outcome()
    if with_items:
        outcome = publication.attack_item("item_1", generator)
    else:
        bases = Publication(hierarchy, primary, {})
        outcome = bases.attack_groups(generator)
    return {"recovered_unprotected": outcome.recovered}


def compare_with_optimum(hierarchy: Hierarchy) -> dict[str, int]:
    decision = decide(
        *(hierarchy.tree, hierarchy.groups, hierarchy.items, hierarchy.minimum)
    )
    primary = primary_groups(hierarchy.groups, hierarchy.minimum)
    fewest = fewest_hidden(hierarchy, primary) if primary.any() else None
    if fewest is None:
        return {}
    return {
        "small_hierarchies": 1,
        "small_hidden": shares(hierarchy, decision)["hidden"],
        "small_optimum": round(fewest),
    }


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))))
