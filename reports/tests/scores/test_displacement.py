"""Items have drifted if they moved far, and by more than chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reports.scores.displacement import Displacement, displaced, linking_error


def test_the_mean_of_the_anchored_items_is_removed():
    moved = np.array([0.5, 0.5, 2.0, 3.0])
    of_items = displaced(moved, np.diag([0.01] * 4), [0, 1, 2])
    assert [item.logits for item in of_items] == pytest.approx([-0.5, -0.5, 1.0, 2.0])
    # The variance of d - (d + d' + d'') / 3, and of an item outside the mean.
    inside, outside = math.sqrt(0.01 * 2 / 3), math.sqrt(0.01 * 4 / 3)
    errors = [item.error for item in of_items]
    assert errors == pytest.approx([inside, inside, inside, outside])


def test_drift_is_large_and_more_than_chance():
    certain = displaced(np.array([1.0, 0, 0, 0]), np.diag([0.01] * 4), range(4))
    assert [item.has_drifted for item in certain] == [True, False, False, False]
    chance = displaced(np.array([1.0, 0, 0, 0]), np.diag([0.5] * 4), range(4))
    assert not any(item.has_drifted for item in chance)
    small = displaced(np.array([0.4, 0, 0, 0]), np.diag([0.0001] * 4), range(4))
    assert not any(item.has_drifted for item in small)


def test_the_test_holds_its_level_for_a_whole_measure():
    random = np.random.default_rng(1)
    covariance = np.diag([4.0] * 8)
    alarms = sum(
        any(
            item.has_drifted
            for item in displaced(random.normal(0, 2, 8), covariance, range(8))
        )
        for _ in range(1000)
    )
    assert alarms < 75


def test_the_linking_error_is_that_of_a_mean_of_items():
    moved = {
        name: Displacement(logits, 0.1, False)
        for name, logits in (("a", 0.2), ("b", -0.2), ("c", 0.0), ("free", 3.0))
    }
    expected = math.sqrt(0.08 / 2) / math.sqrt(3)
    assert linking_error(moved, ["a", "b", "c"]) == pytest.approx(expected)
    assert linking_error(moved, ["a"]) is None
