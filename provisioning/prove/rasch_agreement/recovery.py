"""Simulate surveys, and compare estimated thresholds with those that made them.

Prints a line of JSON: the largest bias of a threshold, its error by chance, and
the share of 95 % intervals that hold the true threshold. Runs in .venv.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from reports.rasch import MISSING, ResponseTable, calibrate
from reports.rasch.responses import Floats, Integers

PEOPLE, SKIPPED = 4000, 0.1
LOCATIONS = np.linspace(-1.2, 1.2, 6)
STEPS = np.array([-1.2, -0.4, 0.4, 1.2])


def main(simulations: int) -> None:
    true = (LOCATIONS[:, None] + STEPS).ravel()
    errors, inside = [], []
    for seed in range(simulations):
        table, _ = ResponseTable.of_people(simulate(np.random.default_rng(seed)))
        calibration = calibrate(table)
        error = np.concatenate(calibration.thresholds) - true
        errors.append(error)
        inside.append(
            np.abs(error) < 1.96 * np.concatenate(calibration.standard_errors)
        )
    spread = np.std(errors, axis=0, ddof=1) / np.sqrt(simulations)
    print(
        json.dumps(
            {
                "simulations": simulations,
                "simulated_bias": round(
                    float(np.abs(np.mean(errors, axis=0)).max()), 4
                ),
                "simulated_bias_error": round(float(spread.max()), 4),
                "simulated_coverage": round(float(np.mean(inside)), 4),
            }
        )
    )


def simulate(random: np.random.Generator) -> Integers:
    measures: Floats = random.normal(0, 1.2, PEOPLE)
    answers = np.empty((PEOPLE, len(LOCATIONS)), dtype=np.int8)
    for item, location in enumerate(LOCATIONS):
        logits = np.arange(len(STEPS) + 1) * measures[:, None] - np.append(
            0, np.cumsum(location + STEPS)
        )
        chances = np.exp(logits)
        chances /= chances.sum(axis=1, keepdims=True)
        answers[:, item] = (chances.cumsum(axis=1) < random.random((PEOPLE, 1))).sum(
            axis=1
        )
    answers[random.random(answers.shape) < SKIPPED] = MISSING
    return answers


if __name__ == "__main__":
    main(int(sys.argv[1]))
