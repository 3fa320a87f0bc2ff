"""Count replies, latencies and failures of a run."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from provisioning.commands import Refusal


@dataclass(slots=True)
class Tally:
    # Kind of request -> number of right replies by latency, in steps of 10 µs.
    latencies: dict[str, Counter[float]] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    began: float = 0.0
    ended: float = 0.0
    # Kind -> right replies between these two moments, whenever they were due.
    in_time: Counter[str] = field(default_factory=Counter)
    # Processor seconds of the process that produced the load.
    own_cpu: float = 0.0

    def add(self, kind: str, seconds: float, failure: str) -> None:
        if failure:
            self.failures[failure] += 1
            return
        if kind not in self.latencies:
            self.latencies[kind] = Counter()
        self.latencies[kind][round(seconds, 5)] += 1

    def merge(self, tally: Tally) -> None:
        """Add the tally of another process that ran at the same time."""
        for kind, latencies in tally.latencies.items():
            self.latencies.setdefault(kind, Counter()).update(latencies)
        self.failures.update(tally.failures)
        self.in_time.update(tally.in_time)
        self.began = min(self.began, tally.began)
        self.ended = max(self.ended, tally.ended)
        self.own_cpu += tally.own_cpu

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def answered(self, kind: str = "") -> int:
        """Return the number of right replies, of one kind or of all."""
        return self._latencies_of(kind).total()

    def failed(self) -> int:
        return self.failures.total()

    def per_second(self, kind: str = "") -> float:
        answered = self.in_time[kind] if kind else self.in_time.total()
        return answered / self.seconds if self.seconds > 0 else 0.0

    def refuse_failures(self, problem: str = "A request failed") -> None:
        if self.failures:
            raise Refusal(f"{problem}: {self.failures_by_name()}")

    def failures_by_name(self) -> dict[str, int]:
        return dict(self.failures.most_common())

    def non_2xx(self) -> dict[str, int]:
        """Return the number of replies by a wrong status that is not 2xx."""
        return {
            failure.removeprefix("status "): count
            for failure, count in self.failures.items()
            if failure.startswith("status ") and not failure.startswith("status 2")
        }

    def percentiles(self, kind: str = "") -> dict[str, float]:
        """Return p50, p95, p99 and max in milliseconds; empty without latencies."""
        latencies = self._latencies_of(kind)
        if not latencies:
            return {}
        return {
            name: round(percentile_of(latencies, percent) * 1000, 2)
            for name, percent in (("p50", 50), ("p95", 95), ("p99", 99), ("max", 100))
        }

    def views(self) -> dict[str, dict[str, float]]:
        return {
            kind: {
                "count": self.answered(kind),
                "per_second": round(self.per_second(kind), 1),
                **self.percentiles(kind),
            }
            for kind in sorted(self.latencies)
        }

    def _latencies_of(self, kind: str) -> Counter[float]:
        if kind:
            return self.latencies.get(kind, Counter())
        return sum(self.latencies.values(), Counter())


def percentile_of(latencies: Counter[float], percent: int) -> float:
    """Return the lowest latency that so many percent do not exceed."""
    rank, passed = math.ceil(percent * latencies.total() / 100), 0
    for seconds in sorted(latencies):
        passed += latencies[seconds]
        if passed >= rank:
            return seconds
    return math.nan


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile from 1 to 99, interpolated; 0 without two values."""
    if len(values) < 2:
        return 0.0
    return statistics.quantiles(values, n=100)[percent - 1]
