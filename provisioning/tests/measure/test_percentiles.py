from __future__ import annotations

from provisioning.measure.percentiles import percentile


def test_percentiles_are_interpolated():
    values = list(range(1, 100))
    assert percentile(values, 50) == 50
    assert percentile(values, 95) == 95
    assert percentile([2.0, 1.0], 50) == 1.5


def test_fewer_than_two_values_have_no_percentile():
    assert percentile([], 95) == percentile([3.0], 95) == 0.0
