"""How long answers took: of any number of them, or of those that were kept."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

# Each bucket is 2 % wider than the one before: a quantile is read from the
# middle of its bucket, so that it is within 1 %.
GROWTH = math.log(1.02)
# Everything faster is as fast as this, in seconds.
SHORTEST = 1e-6


def p95(kept: Sequence[float]) -> float:
    """Exact, in the unit of what was kept; raises where that is less than two."""
    return statistics.quantiles(kept, n=20)[-1]


@dataclass(slots=True)
class Latencies:
    """A histogram in seconds; of any size, it takes the same room."""

    buckets: Counter[int] = field(default_factory=Counter)
    count: int = 0
    total: float = 0.0
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[int(math.log(max(seconds, SHORTEST) / SHORTEST) / GROWTH)] += 1
        self.count += 1
        self.total += seconds
        self.longest = max(self.longest, seconds)

    def quantile(self, share: float) -> float:
        """By rank: the least latency that `share` of all do not exceed."""
        if not self.count:
            return math.nan
        rank, passed = math.ceil(share * self.count), 0
        for bucket in sorted(self.buckets):
            passed += self.buckets[bucket]
            if passed >= rank:
                middle = SHORTEST * math.exp((bucket + 0.5) * GROWTH)
                return min(middle, self.longest)
        return self.longest

    def merge(self, other: Latencies) -> None:
        self.buckets.update(other.buckets)
        self.count += other.count
        self.total += other.total
        self.longest = max(self.longest, other.longest)

    def figures(self) -> dict[str, float]:
        """In milliseconds, for tables and JSON."""
        names = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
        found = {name: self.quantile(share) for name, share in names.items()}
        found["max"] = self.longest if self.count else math.nan
        return {
            name: round(value * 1000, 2)
            for name, value in found.items()
            if not math.isnan(value)
        }
