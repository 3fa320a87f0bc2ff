"""Percentiles of a list of values, and of a histogram of latencies."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

# Each bucket is 2 % wider than the one before. A percentile is read from the
# middle of its bucket, so that it is within 1 %.
GROWTH = math.log(1.02)
# LatencyHistogram below this many seconds share the first bucket.
SHORTEST = 1e-6


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile from 1 to 99, interpolated; 0 without two values."""
    if len(values) < 2:
        return 0.0
    return statistics.quantiles(values, n=100)[percent - 1]


@dataclass(slots=True)
class LatencyHistogram:
    """Count latencies in seconds. Its size does not grow with their number."""

    buckets: Counter[int] = field(default_factory=Counter)
    count: int = 0
    total: float = 0.0
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[int(math.log(max(seconds, SHORTEST) / SHORTEST) / GROWTH)] += 1
        self.count += 1
        self.total += seconds
        self.longest = max(self.longest, seconds)

    def percentile(self, percent: int) -> float:
        """Return the lowest latency that so many percent do not exceed."""
        if not self.count:
            return math.nan
        rank, passed = math.ceil(percent * self.count / 100), 0
        for bucket in sorted(self.buckets):
            passed += self.buckets[bucket]
            if passed >= rank:
                middle = SHORTEST * math.exp((bucket + 0.5) * GROWTH)
                return min(middle, self.longest)
        return self.longest

    def merge(self, other: LatencyHistogram) -> None:
        self.buckets.update(other.buckets)
        self.count += other.count
        self.total += other.total
        self.longest = max(self.longest, other.longest)

    def figures(self) -> dict[str, float]:
        """Return p50, p95, p99 and max in milliseconds; empty without latencies."""
        if not self.count:
            return {}
        figures = {f"p{percent}": self.percentile(percent) for percent in (50, 95, 99)}
        figures["max"] = self.longest
        return {name: round(value * 1000, 2) for name, value in figures.items()}
