"""Attack the counted results of a database, and print what was found as JSON."""

from __future__ import annotations

import json
from collections import Counter

import django
import numpy as np

from provisioning.suppression_attack.hierarchies import Hierarchy
from provisioning.suppression_attack.worker import attack, attack_without_protection

django.setup()

from reports.models import ResultsRollUp  # noqa: E402
from reports.results.hiding import tables_of  # noqa: E402
from reports.suppression.results import decide  # noqa: E402
from survey.models import Administration  # noqa: E402


def main() -> Counter[str]:
    figures: Counter[str] = Counter()
    generator = np.random.default_rng(1)
    for roll_up in ResultsRollUp.objects.order_by("pk"):
        administration = Administration.objects.get(pk=roll_up.pk)
        tables = tables_of(administration)
        if tables is None:
            continue
        minimum = administration.minimum_group
        hierarchy = Hierarchy(tables.tree, tables.groups, dict(tables.items), minimum)
        decision = decide(tables.tree, tables.groups, tables.items, minimum)
        figures["administrations"] += 1
        figures.update(attack(hierarchy, decision, generator))
        for name in hierarchy.items:
            figures.update(attack_without_protection(hierarchy, generator, item=name))
    return figures


if __name__ == "__main__":
    print(json.dumps(main()))
