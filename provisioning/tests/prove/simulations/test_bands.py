from __future__ import annotations

import json

from provisioning.prove.simulations.bands import shortcomings
from provisioning.prove.simulations.simulated_bands import named_bands, simulate
from reports.scores.scale import SCHOOLS, Scale
from reports.scores.shrinkage import SchoolDifferences, Shrinkage
from reports.scores.visible import LEAST_CHANCE, VisibleScore

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
    # The later another band is named, the fewer doubts and the more wrong bands.
    rules = list(figures["another_band_named_from"].values())
    doubts = [rule["doubtful"] for rule in rules]
    assert len(rules) == 4 and doubts == sorted(doubts, reverse=True) != doubts[:1] * 4
    wrong = [rule["wrong_alone"] for rule in rules]
    assert wrong[0] <= wrong[1] < wrong[3]


def test_the_rule_of_the_product_is_among_those_that_are_counted():
    scale = Scale(0.0, 1.0, SCHOOLS)
    shrinkage = Shrinkage.of(scale, SchoolDifferences(0.0, 1.0, 4.0))
    named = set()
    for mean in range(5, 99, 3):
        for people in (20, 60, 300):
            score = VisibleScore.drawn(
                *(mean, 80 / people**0.5),
                benchmarks=frozenset(),
                people=people,
                shrinkage=shrinkage,
            )
            assert named_bands(score, LEAST_CHANCE) == score.possible_bands
            named.add(named_bands(score, 0.3) == score.possible_bands)
    assert named == {True, False}


def test_what_is_missed():
    assert shortcomings(GOOD) == []
    for name, value in (
        ("two_steps_wrong", 0.11),
        ("bands_without_doubt", 1),
        ("bands_of_identical_schools", 0.06),
        ("wrong_without_doubt", 0.21),
        ("two_steps_wrong_before", 0.01),
        ("wrong_without_doubt", 0.21),
    ):
        assert shortcomings({**GOOD, name: value}), name
