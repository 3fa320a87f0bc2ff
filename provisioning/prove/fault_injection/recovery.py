"""Find when saving has recovered, and how fast it was meanwhile.

Recovery is the start of the first window in which at least 999 of 1,000
attempts got the right answer, 95 of 100 took at most twice as long as in the
baseline, and half as many as there were made at all. The baseline is that of
the run's start or that before the fault, whichever is easier; the report
compares the two. An attempt belongs to the window in which it was answered, so
that one which hung through an outage counts against the time after it.
"""

from __future__ import annotations

import bisect
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from provisioning.measure.load.tally import percentile
from provisioning.prove.fault_injection.saves import Attempt

SUCCESS = 0.999
SLOWER = 2.0
# Delays below this are imperceptible, and noise on two busy cores: twice a
# baseline of five milliseconds is exceeded without any fault.
IMPERCEPTIBLE = 0.05
STEP = 0.25
# A browser that sends a cut request again by itself does so within a second.
RESENT = 1.0
ANSWERED = attrgetter("answered")


@dataclass(frozen=True, slots=True)
class Baseline:
    per_second: float
    p95: float
    median: float

    def or_as_in(self, calm: Baseline) -> Baseline:
        """Return the easier of both: the machine may be busier by now."""
        if not calm.per_second:
            return self
        return Baseline(
            per_second=min(self.per_second, calm.per_second),
            p95=max(self.p95, calm.p95),
            median=calm.median,
        )

    @property
    def limit(self) -> float:
        return max(SLOWER * self.p95, IMPERCEPTIBLE)


@dataclass
class Timeline:
    attempts: list[Attempt] = field(default_factory=list)

    def add(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            # Logs of several processes arrive nearly in order.
            bisect.insort(self.attempts, attempt, key=ANSWERED)

    def between(self, begin: float, end: float) -> Sequence[Attempt]:
        first, last = (
            bisect.bisect_left(self.attempts, moment, key=ANSWERED)
            for moment in (begin, end)
        )
        return self.attempts[first:last]

    def failures(self, begin: float, end: float) -> Counter[str]:
        """Count failed attempts by their replies, without late packets.

        One that was cut, and sent again at once with success, is `resent`: a
        browser does that by itself, without showing anything. How long the answer
        took is judged by the recovery.
        """
        attempts = self.between(begin, end)
        saved = {
            (attempt.respondent, attempt.page, attempt.revision): attempt.sent
            for attempt in attempts
            if attempt.succeeded
        }
        failures: Counter[str] = Counter()
        for attempt in attempts:
            if attempt.succeeded or attempt.kind == "late":
                continue
            key = (attempt.respondent, attempt.page, attempt.revision)
            is_resent = saved.get(key, end) <= attempt.answered + RESENT
            name = "resent" if attempt.reply == "cut" and is_resent else attempt.reply
            failures[name] += 1
        return failures

    def baseline(self, begin: float, end: float) -> Baseline:
        seconds = [attempt.seconds for attempt in self.between(begin, end)]
        if len(seconds) < 2:
            return Baseline(0.0, 0.0, 0.0)
        return Baseline(
            per_second=len(seconds) / (end - begin),
            p95=percentile(seconds, 95),
            median=statistics.median(seconds),
        )

    def median(self, begin: float, end: float) -> float:
        """Return the median seconds of successful attempts, or 0."""
        attempts = self.between(begin, end)
        seconds = [attempt.seconds for attempt in attempts if attempt.succeeded]
        return statistics.median(seconds) if seconds else 0.0

    def recovered(
        self, since: float, now: float, baseline: Baseline, window: float
    ) -> float | None:
        """Return the seconds from `since` to recovery; None if there is none yet."""
        begin = since
        while begin + window <= now:
            attempts = self.between(begin, begin + window)
            if len(attempts) >= max(2, baseline.per_second * window / 2):
                right = sum(attempt.succeeded for attempt in attempts)
                p95 = percentile([attempt.seconds for attempt in attempts], 95)
                if right >= SUCCESS * len(attempts) and p95 <= baseline.limit:
                    return begin - since
            begin += STEP
        return None
