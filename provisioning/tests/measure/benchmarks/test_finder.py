from __future__ import annotations

import copy

from provisioning import commands
from provisioning.measure.benchmarks import finder

NO_FAILURES = {"failed": 0, "refused": 0}
HELD = {
    "hit_ratio": 0.92,
    "cached_per_s": 9000.0,
    "nginx_cache_per_s": 12000.0,
    "p95_ms": 8.0,
    "p95_ms_edited": 9.0,
    "misses": {
        "nearest": {"median": 1.0, "p95": 2.0},
        "towns": {"median": 2.0, "p95": 5.0},
    },
    "calm": NO_FAILURES,
    "edited": NO_FAILURES,
    "database_down": NO_FAILURES,
}


def missed(**changes):
    result = copy.deepcopy(HELD) | changes
    figures = result | finder.worst_of(result)
    return commands.missed(figures, **finder.limits_of(figures))


def test_each_requirement_can_be_missed():
    assert missed() == []
    for changes in (
        {"hit_ratio": 0.89},
        {"cached_per_s": 5999.0},
        {"p95_ms": 20.1, "p95_ms_edited": 20.1},
        {"p95_ms_edited": 9.7},
        {"database_down": {"failed": 1, "refused": 0}},
        {"calm": {"failed": 0, "refused": 1}},
        {"misses": {**HELD["misses"], "towns": {"median": 10.1, "p95": 11}}},
        {"misses": {**HELD["misses"], "nearest": {"median": 5.1, "p95": 6}}},
    ):
        assert len(missed(**changes)) == 1, changes


def test_fewer_requests_are_offered_where_misses_are_slow(monkeypatch):
    # So that fewer places are drawn.
    monkeypatch.setattr(finder, "WANTED_RATE", 100.0)
    assert finder.rate_to_offer(misses=100_000) == finder.WANTED_RATE
    assert finder.rate_to_offer(misses=50) < finder.WANTED_RATE
