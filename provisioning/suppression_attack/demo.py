"""Attack the counted results of a database, and print what was found as JSON."""

from __future__ import annotations

import json
from collections import Counter

import django
import numpy as np

django.setup()

from django.db import transaction  # noqa: E402

from provisioning.suppression_attack.database import Stored  # noqa: E402
from provisioning.suppression_attack.readers import attack_readers  # noqa: E402
from provisioning.suppression_attack.views import differences  # noqa: E402
from provisioning.suppression_attack.worker import (  # noqa: E402
    attack,
    attack_without_protection,
)
from reports.models import ResultsRollUp  # noqa: E402
from survey.models import Administration  # noqa: E402


def main() -> Counter[str]:
    figures: Counter[str] = Counter()
    generator = np.random.default_rng(1)
    for roll_up in ResultsRollUp.objects.order_by("pk"):
        administration = Administration.objects.get(pk=roll_up.pk)
        stored = Stored.of(administration)
        if stored is None:
            continue
        figures["administrations"] += 1
        figures["shown_differently"] += differences(stored)
        figures.update(attack(stored.hierarchy, stored.decision, generator))
        for name in stored.hierarchy.items:
            figures.update(
                attack_without_protection(stored.hierarchy, generator, item=name)
            )
        with transaction.atomic():
            ResultsRollUp.objects.filter(pk=roll_up.pk).update(shared_at=roll_up.as_of)
            figures.update(attack_readers(stored, generator, unprotected=False))
            transaction.set_rollback(True)
    return figures


if __name__ == "__main__":
    print(json.dumps(main()))
