"""Latencies, failures and rates of a run, and of several processes together."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from provisioning.measure.load.tally import Tally, percentile, percentile_of


def test_tallies_of_two_processes_are_merged():
    left, right = Tally(began=1.0, ended=3.0), Tally(began=1.5, ended=3.5)
    for tally, seconds in ((left, 0.1), (right, 0.3)):
        tally.add("survey_login", seconds, "")
        tally.add("survey_login", 0.0, "status 502")
    left.merge(right)
    assert (left.answered(), left.failed(), left.seconds) == (2, 2, 2.5)
    assert left.percentiles()["max"] == 300
    assert left.non_2xx() == {"502": 2}


def test_a_percentile_is_a_latency_that_occurred():
    latencies = Counter({n / 1000: 1 for n in range(1, 101)})
    assert [percentile_of(latencies, p) for p in (50, 95, 100)] == [0.05, 0.095, 0.1]
    assert percentile_of(Counter({0.25: 7}), 99) == 0.25
    assert math.isnan(percentile_of(Counter(), 50))


def test_percentiles_are_in_milliseconds_to_ten_microseconds():
    tally = Tally()
    assert tally.percentiles() == {}
    tally.add("survey_login", 0.250_004, "")
    tally.add("survey_display", 0.000_016, "")
    assert tally.percentiles("survey_login") == {
        "p50": 250.0,
        "p95": 250.0,
        "p99": 250.0,
        "max": 250.0,
    }
    assert tally.percentiles()["p50"] == 0.02


def test_the_views_of_a_run_have_their_own_rates():
    tally = Tally(began=10.0, ended=12.0)
    for kind, count in (("survey_login", 1), ("survey_display", 4)):
        for _ in range(count):
            tally.add(kind, 0.1, "")
        tally.in_time[kind] = count
    views = tally.views()
    assert list(views) == ["survey_display", "survey_login"]
    assert views["survey_display"]["count"] == 4
    assert views["survey_display"]["per_second"] == 2.0
    assert tally.per_second() == 2.5


def test_a_wrong_status_of_2xx_is_a_failure_of_another_kind():
    tally = Tally()
    for failure in ("status 204", "status 503", "status 503", "timeout"):
        tally.add("survey_login", 0.1, failure)
    assert tally.failures_by_name()["status 503"] == tally.failed() / 2
    assert tally.non_2xx() == {"503": 2}


@pytest.mark.parametrize("ended", [0.0, 5.0])
def test_a_run_without_duration_has_no_rate(ended):
    assert Tally(began=5.0, ended=ended).per_second() == 0.0


def test_percentiles_are_interpolated():
    values = list(range(1, 100))
    assert percentile(values, 50) == 50
    assert percentile(values, 95) == 95
    assert percentile([2.0, 1.0], 50) == 1.5


def test_fewer_than_two_values_have_no_percentile():
    assert percentile([], 95) == percentile([3.0], 95) == 0.0
