"""Find what makes thresholds impossible to estimate, before estimating them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reports.rasch.responses import ResponseTable

UNANSWERED = "unanswered"
ONE_CATEGORY = "one_category"
UNUSED_CATEGORY = "unused_category"
DISCONNECTED = "disconnected"


@dataclass(frozen=True)
class Problem:
    """A finding about an item. All kinds but an unused category exclude it."""

    kind: str
    item: int
    category: int | None = None

    @property
    def excludes(self) -> bool:
        return self.kind != UNUSED_CATEGORY


def examine(table: ResponseTable) -> list[Problem]:
    """Return the problems of a table, in the order of its items.

    Thresholds of two items can be compared only if people link them: somebody
    answered both, or there is a chain of such items. Of several groups of linked
    items all but the largest are excluded.
    """
    # As in `reports.rasch.calibration`.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    problems = []
    for item in range(table.items):
        counts = table.category_counts(item)
        used = np.flatnonzero(counts)
        if not len(used):
            problems.append(Problem(UNANSWERED, item))
        elif len(used) == 1:
            problems.append(Problem(ONE_CATEGORY, item))
        else:
            problems += [
                Problem(UNUSED_CATEGORY, item, int(category))
                for category in np.flatnonzero(counts == 0)
            ]
    excluded = {problem.item for problem in problems if problem.excludes}
    rest = [item for item in range(table.items) if item not in excluded]
    # The lowest and the highest score say nothing about differences of items.
    answered = table.answered[:, rest]
    categories = np.where(answered, table.categories[:, rest], 0)
    scores, most = categories.sum(axis=1), answered @ categories.max(axis=0, initial=0)
    together = answered[(scores > 0) & (scores < most)].astype(np.int64)
    _, group_of_item = connected_components(csr_array(together.T @ together))
    largest = np.argmax(np.bincount(group_of_item)) if rest else 0
    problems += [
        Problem(DISCONNECTED, item)
        for item, group in zip(rest, group_of_item, strict=True)
        if group != largest
    ]
    return sorted(problems, key=lambda problem: (problem.item, problem.category or 0))
