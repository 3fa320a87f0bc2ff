"""Make answers as the partial-credit model says, and measure the people."""

from __future__ import annotations

import numpy as np

from reports.rasch.responses import Floats, Integers
from reports.scores.calibration import MeasureResult, calibrate_measure
from reports.scores.joining import Anchor, table_of

# The deviation of people, in logits.
DEVIATION = 1.2
LOCATIONS = np.linspace(-0.8, 0.8, 6)
STEPS = np.array([-1.2, 0.0, 1.2])
THRESHOLDS = LOCATIONS[:, None] + STEPS
NAMES = [f"q{number}" for number in range(1, len(LOCATIONS) + 1)]
OPTIONS = {name: [str(value) for value in range(len(STEPS) + 1)] for name in NAMES}


def answers(
    random: np.random.Generator, measures: Floats, thresholds: Floats = THRESHOLDS
) -> list[Integers]:
    """Return the categories that people of these measures choose, by item."""
    columns = []
    for steps in thresholds:
        logits = np.arange(len(steps) + 1) * measures[:, None]
        chances = np.exp(logits - np.append(0, np.cumsum(steps)))
        chances /= chances.sum(axis=1, keepdims=True)
        level = random.random((len(measures), 1))
        columns.append((chances.cumsum(axis=1)[:, :-1] < level).sum(axis=1))
    return columns


def calibrated(
    columns: list[Integers], anchors: dict[str, Anchor] | None = None
) -> tuple[MeasureResult, Floats]:
    """Return the calibration of the product, and the measure of each person."""
    table, row = table_of(columns)
    result = calibrate_measure(table, NAMES, OPTIONS, anchors=anchors or {})
    return result, result.measures[row]
