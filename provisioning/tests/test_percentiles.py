from __future__ import annotations

import pytest

from provisioning.percentiles import LatencyHistogram, percentile


def test_percentiles_are_interpolated():
    values = list(range(1, 100))
    assert percentile(values, 50) == 50
    assert percentile(values, 95) == 95
    assert percentile([2.0, 1.0], 50) == 1.5


def test_fewer_than_two_values_have_no_percentile():
    assert percentile([], 95) == percentile([3.0], 95) == 0.0


def test_histogram_percentiles_are_within_two_percent():
    latencies = LatencyHistogram()
    for n in range(1, 10_001):
        latencies.add(n / 10_000)
    for percent in (50, 95, 99):
        assert latencies.percentile(percent) == pytest.approx(percent / 100, rel=0.02)
    assert latencies.percentile(100) == pytest.approx(1.0, rel=0.02)


def test_merged_histograms_count_all_latencies():
    fast, slow = LatencyHistogram(), LatencyHistogram()
    fast.add(0.001)
    slow.add(2.0)
    fast.merge(slow)
    assert (fast.count, fast.total, fast.longest) == (2, 2.001, 2.0)


def test_figures_are_in_milliseconds_and_empty_without_latencies():
    latencies = LatencyHistogram()
    assert latencies.figures() == {}
    latencies.add(0.25)
    assert latencies.figures() == pytest.approx(
        {"p50": 250, "p95": 250, "p99": 250, "max": 250}, rel=0.02
    )
