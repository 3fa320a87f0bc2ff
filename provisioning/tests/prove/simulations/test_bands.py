from __future__ import annotations

import json

from provisioning.prove.simulations.bands import shortcomings
from provisioning.prove.simulations.simulated_bands import simulate

GOOD = {
    "two_steps_wrong": 0.02,
    "two_steps_wrong_before": 0.1,
    "bands_without_doubt": 0,
    "bands_of_identical_schools": 0.01,
    "wrong_without_doubt": 0.1,
}


def test_the_rule_before_makes_bands_of_chance():
    figures = simulate(simulations=2)
    json.dumps(figures)
    assert shortcomings(figures) == []
    assert figures["bands_without_doubt_before"] > 0
    assert figures["bands_of_identical_schools_before"] == 1


def test_what_is_missed():
    assert shortcomings(GOOD) == []
    for name, value in (
        ("two_steps_wrong", 0.11),
        ("bands_without_doubt", 1),
        ("bands_of_identical_schools", 0.06),
        ("wrong_without_doubt", 0.21),
        ("two_steps_wrong_before", 0.01),
    ):
        assert shortcomings({**GOOD, name: value}), name
