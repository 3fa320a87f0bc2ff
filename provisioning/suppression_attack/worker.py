"""Attack some hierarchies and print what was found as JSON: SEED FIRST STEP COUNT."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter

import django
import numpy as np

from provisioning.suppression_attack.attacker import Publication, unprotected
from provisioning.suppression_attack.hierarchies import (
    Hierarchy,
    draw,
    draw_small,
    next_wave,
)
from provisioning.suppression_attack.means import PublishedMeans
from provisioning.suppression_attack.optimum import fewest_hidden
from reports.suppression.results import decide, primary_groups
from reports.suppression.tables import Decision

django.setup()

from django.db import transaction  # noqa: E402

from provisioning.suppression_attack.database import (  # noqa: E402
    AN_HOUR_BEFORE,
    published_survey,
    store,
)
from provisioning.suppression_attack.readers import attack_readers  # noqa: E402
from provisioning.suppression_attack.views import (  # noqa: E402
    differences,
    staff_view,
)
from provisioning.suppression_attack.waves import WavesAttack  # noqa: E402

# Every so many hierarchies a small one is compared with the optimum, and the items
# of one without protection are attacked.
OPTIMUM_EVERY = 20
UNPROTECTED_EVERY = 10
# And so often two waves are attacked together, and the second one by itself.
WAVES_EVERY = 2
SECOND_WAVE_EVERY = 10


def main(seed: int, first: int, step: int, count: int) -> Counter[str]:
    figures: Counter[str] = Counter()
    for number in range(first, count, step):
        generator = np.random.default_rng([seed, number])
        # Nothing is kept in the database.
        with transaction.atomic():
            figures.update(attack_drawn(number, generator))
            transaction.set_rollback(True)
        if number % OPTIMUM_EVERY == 0:
            figures.update(compare_with_optimum(draw_small(generator)))
        if number % WAVES_EVERY == 0:
            with transaction.atomic():
                alone = number % SECOND_WAVE_EVERY == 0
                figures.update(attack_waves(generator, second_alone=alone))
                transaction.set_rollback(True)
    return figures


def attack_drawn(number: int, generator: np.random.Generator) -> Counter[str]:
    """Store an invented hierarchy, and attack what is published of it."""
    figures: Counter[str] = Counter(hierarchies=1)
    stored = store(draw(generator), published_survey(), f"attacked-{number}")
    hierarchy = stored.hierarchy
    began = time.process_time()
    decision = decide(
        *(hierarchy.tree, hierarchy.groups, hierarchy.items, hierarchy.minimum)
    )
    milliseconds = (time.process_time() - began) * 1000
    figures["milliseconds_deciding"] += round(milliseconds)
    figures["shown_differently"] += differences(stored)
    figures.update(shares(hierarchy, decision))
    figures.update(attack(hierarchy, decision, generator))
    with_unprotected = number % UNPROTECTED_EVERY == 0
    figures.update(attack_readers(stored, generator, unprotected=with_unprotected))
    item = "item_1" if with_unprotected else None
    figures.update(attack_without_protection(hierarchy, generator, item=item))
    outcome = PublishedMeans.unprotected(hierarchy).attack()
    figures["means_recovered_unprotected"] += outcome.recovered
    return figures


def attack_waves(generator: np.random.Generator, *, second_alone: bool) -> Counter[str]:
    """Store two waves of the same people, and attack them together.

    Without protection, the second is decided as if it were the first. With
    `second_alone`, it is also attacked by itself, because its decision knows the first.
    """
    figures: Counter[str] = Counter(pairs_of_waves=1)
    hierarchy = draw(generator, districts=2, schools=4, items=1)
    later = next_wave(hierarchy, generator)
    survey = published_survey()
    first = store(hierarchy, survey, "first", closed=AN_HOUR_BEFORE)
    second = store(later, survey, "second", before=first)
    alone = store(later, published_survey("other"), "alone", before=first)
    for protected, other in ((True, second), (False, alone)):
        views = (staff_view(first).figures, staff_view(other).figures)
        outcome = WavesAttack((first, other), views, "item_1").attack()
        hidden = shares(other.hierarchy, other.decision)
        end = "" if protected else "_unprotected"
        figures.update(
            {
                f"waves_attacked{end}": outcome.cells,
                f"waves_recovered{end}": outcome.recovered,
                f"waves_narrowed_below_3{end}": outcome.narrowed,
                f"waves_hidden{end}": hidden["hidden"],
                f"waves_cells{end}": hidden["cells"],
            }
        )
    figures["shown_differently"] += differences(first) + differences(second)
    if second_alone:
        figures.update(attack(second.hierarchy, second.decision, generator))
        figures.update(attack_readers(second, generator, unprotected=False))
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
        "people": int(hierarchy.groups.people[0, 0]) * len(hierarchy.groups.attributes),
        "people_left_out": people_left_out(hierarchy, decision),
    }


def people_left_out(hierarchy: Hierarchy, decision: Decision) -> int:
    """Count people who are in no figure of the state by an attribute."""
    people = hierarchy.groups.people
    published = decision.published(hierarchy.tree, hierarchy.groups, people)[0]
    attributes = map(list, hierarchy.groups.attributes)
    return sum(int((people[0] - published)[columns].sum()) for columns in attributes)


def attack(
    hierarchy: Hierarchy, decision: Decision, generator: np.random.Generator
) -> dict[str, int]:
    publication = Publication(hierarchy, decision)
    outcome = publication.attack_groups(generator)
    for name in decision.items:
        outcome.add(publication.attack_item(name, generator))
    if hierarchy.measures:
        outcome.add(PublishedMeans.of(hierarchy, decision).attack())
    return {
        "attacked": outcome.cells,
        "recovered": outcome.recovered,
        "narrowed_below_3": outcome.narrowed,
        "implied_by_totals": outcome.implied,
    }


def attack_without_protection(
    hierarchy: Hierarchy, generator: np.random.Generator, *, item: str | None
) -> dict[str, int]:
    """Attack results of which only small groups themselves are hidden."""
    publication = Publication(hierarchy, unprotected(hierarchy))
    if item is None:
        outcome = publication.attack_groups(generator)
    else:
        outcome = publication.attack_item(item, generator)
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
