"""Count replies, latencies and failures of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypedDict

from provisioning.percentiles import LatencyHistogram


class TallyFigures(TypedDict):
    seconds: float
    per_second: float
    views: dict[str, dict[str, float]]
    failures: dict[str, int]
    non_2xx: dict[str, int]
    engine_us_per_request: float


@dataclass(slots=True)
class Tally:
    # Kind of request -> latencies of the right replies.
    latencies: dict[str, LatencyHistogram] = field(default_factory=dict)
    # Kind -> failure -> number.
    failures: dict[str, Counter[str]] = field(default_factory=dict)
    # Statuses of failures that are not 2xx.
    non_2xx: Counter[int] = field(default_factory=Counter)
    began: float = 0.0
    ended: float = 0.0
    # Kind -> right replies between these two moments, whenever they were due.
    in_time: Counter[str] = field(default_factory=Counter)
    # Processor seconds of the process that produced the load.
    own_cpu: float = 0.0

    def add(self, kind: str, seconds: float, failure: str, status: int = 0) -> None:
        """Count one exchange; `status` is 0 without a reply."""
        if failure:
            self.failures.setdefault(kind, Counter())[failure] += 1
            if status and not 200 <= status < 300:
                self.non_2xx[status] += 1
            return
        if kind not in self.latencies:
            self.latencies[kind] = LatencyHistogram()
        self.latencies[kind].add(seconds)

    def merge(self, other: Tally) -> None:
        """Add the tally of another process that ran at the same time."""
        for kind, latencies in other.latencies.items():
            self.latencies.setdefault(kind, LatencyHistogram()).merge(latencies)
        for kind, failures in other.failures.items():
            self.failures.setdefault(kind, Counter()).update(failures)
        self.non_2xx.update(other.non_2xx)
        self.in_time.update(other.in_time)
        self.began = min(self.began, other.began)
        self.ended = max(self.ended, other.ended)
        self.own_cpu += other.own_cpu

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def answered(self, kind: str = "") -> int:
        """Return the number of right replies, of one kind or of all."""
        return sum(
            latencies.count
            for name, latencies in self.latencies.items()
            if kind in ("", name)
        )

    def failed(self) -> int:
        return sum(failures.total() for failures in self.failures.values())

    def per_second(self, kind: str = "") -> float:
        """Return the rate of right replies while the run was counted."""
        answered = self.in_time[kind] if kind else self.in_time.total()
        return answered / self.seconds if self.seconds > 0 else 0.0

    def overall(self) -> LatencyHistogram:
        together = LatencyHistogram()
        for latencies in self.latencies.values():
            together.merge(latencies)
        return together

    def failures_by_name(self) -> dict[str, int]:
        together: Counter[str] = Counter()
        for failures in self.failures.values():
            together.update(failures)
        return dict(together.most_common())

    def figures(self) -> TallyFigures:
        """Return the figures for JSON, with latencies in milliseconds."""
        requests = max(1, self.answered() + self.failed())
        return {
            "seconds": round(self.seconds, 2),
            "per_second": round(self.per_second(), 1),
            "views": {
                kind: {
                    "count": latencies.count,
                    "per_second": round(self.per_second(kind), 1),
                    **latencies.figures(),
                }
                for kind, latencies in sorted(self.latencies.items())
            },
            "failures": self.failures_by_name(),
            "non_2xx": {str(status): count for status, count in self.non_2xx.items()},
            "engine_us_per_request": round(self.own_cpu * 1e6 / requests, 1),
        }
