"""Answers that the partial-credit model makes, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reports.rasch.responses import Integers


def simulate(
    thresholds: Sequence[Sequence[float]], *, people: int, seed: int = 1
) -> Integers:
    random = np.random.default_rng(seed)
    measures = random.normal(0, 1.2, people)
    columns = []
    for steps in thresholds:
        logits = np.arange(len(steps) + 1) * measures[:, None]
        chances = np.exp(logits - np.append(0, np.cumsum(steps)))
        chances /= chances.sum(axis=1, keepdims=True)
        columns.append((chances.cumsum(1) < random.random((people, 1))).sum(1))
    return np.column_stack(columns)
