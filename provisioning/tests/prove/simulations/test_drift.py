from __future__ import annotations

import json

import pytest

from provisioning.prove.simulations.drift import shortcomings
from provisioning.prove.simulations.simulated_drift import simulate

GOOD = {
    "flagged_without_drift": {"100": 0.01, "300": 0.0},
    "found": {"100": 0.7, "300": 1.0},
    "trends_held": {"now": 0.94, "before": 0.7},
}


def test_the_rule_before_calls_chance_drift(monkeypatch):
    monkeypatch.setattr(
        "provisioning.prove.simulations.simulated_drift.PEOPLE", (100, 300)
    )
    figures = simulate(replications=5)
    json.dumps(figures)
    assert max(figures["flagged_without_drift"].values()) <= 0.05
    assert figures["flagged_without_drift_before"]["100"] > 0.05
    assert figures["found"]["300"] == 1


@pytest.mark.parametrize(
    ("name", "size", "value"),
    [
        ("flagged_without_drift", "300", 0.06),
        ("found", "300", 0.5),
        ("trends_held", "now", 0.8),
        ("trends_held", "before", 0.95),
    ],
)
def test_what_is_missed(name, size, value):
    assert shortcomings(GOOD) == []
    assert len(shortcomings({**GOOD, name: {**GOOD[name], size: value}})) == 1
