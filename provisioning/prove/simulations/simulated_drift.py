"""Simulate two waves, and compare their items by the functions of the product."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from provisioning.prove.simulations.answers import (
    DEVIATION,
    THRESHOLDS,
    answers,
    calibrated,
)
from reports.rasch.responses import Floats
from reports.scores.calibration import MeasureResult
from reports.scores.joining import Anchor
from reports.scores.scale import CERTAIN

PEOPLE = (100, 300, 1000, 3000)
MOVED, LOGITS = 1, 1.0
# Before, a larger displacement was drift.
LIMIT_BEFORE = 0.3
# People have changed by so much, and items are moved by chance with this deviation.
CHANGE, UNREST = 0.3, 0.15
PEOPLE_OF_TREND = 2000


def waves(
    random: np.random.Generator, people: int, moved: Floats
) -> tuple[MeasureResult, tuple[Floats, Floats]]:
    """Return the second wave, anchored to the first, and the measures of both."""
    before = random.normal(0, DEVIATION, people)
    benchmark, measures_before = calibrated(answers(random, before))
    anchors = {
        item.name: Anchor(
            tuple(item.option_categories), tuple(item.thresholds), item.covariances
        )
        for item in benchmark.items
    }
    now = random.normal(CHANGE, DEVIATION, people)
    thresholds = THRESHOLDS + moved[:, None]
    result, measures = calibrated(answers(random, now, thresholds), anchors)
    return result, (measures_before, measures)


def simulate(replications: int) -> dict[str, object]:
    counts: defaultdict[str, dict[str, list[bool]]] = defaultdict(dict)
    still = np.zeros(len(THRESHOLDS))
    drifted = np.where(np.arange(len(THRESHOLDS)) == MOVED, LOGITS, 0.0)
    for people in PEOPLE:
        size = str(people)
        flagged, before, detected = [], [], []
        for seed in range(replications):
            random = np.random.default_rng([seed, people])
            result, _measures = waves(random, people, still)
            for item in result.items:
                flagged.append(item.has_drifted)
                before.append(abs(item.displacement or 0) > LIMIT_BEFORE)
            result, _measures = waves(random, people, drifted)
            detected += [
                i.has_drifted for i in result.items if i.name == f"q{MOVED + 1}"
            ]
        counts["flagged_without_drift"][size] = flagged
        counts["flagged_without_drift_before"][size] = before
        counts["found"][size] = detected
    counts["trends_held"] = trends(replications)
    return {
        name: {key: round(float(np.mean(held)), 4) for key, held in of_name.items()}
        for name, of_name in counts.items()
    }


def trends(replications: int) -> dict[str, list[bool]]:
    """Return whether the interval of each change holds the true one."""
    held: dict[str, list[bool]] = {"now": [], "before": []}
    for seed in range(replications):
        random = np.random.default_rng([seed, 0])
        moved = random.normal(0, UNREST, len(THRESHOLDS))
        result, measures = waves(random, PEOPLE_OF_TREND, moved)
        means = [float(np.nanmean(of_wave)) for of_wave in measures]
        variance = sum(float(np.nanvar(of)) / len(of) for of in measures)
        wrong = abs(means[1] - means[0] - CHANGE)
        link = result.linking_error or 0.0
        held["before"].append(wrong <= CERTAIN * variance**0.5)
        held["now"].append(wrong <= CERTAIN * (variance + link**2) ** 0.5)
    return held
