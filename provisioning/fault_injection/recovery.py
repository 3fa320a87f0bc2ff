"""When saving was well again, and how fast it was meanwhile.

Recovered is the beginning of the first window in which at least 999 of 1,000
attempts got the right answer, 95 of 100 took at most twice as long as in
the calm before, and half as many as then were made at all. (The calm at the
beginning of the run or that before the fault, whichever was slower; the report
tells how the last one compares with the first.) An attempt counts
in the window in which it was answered, so that one which hung through the
whole outage counts against the time after it.
"""

from __future__ import annotations

import bisect
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from provisioning.fault_injection.attempts import Attempt
from provisioning.percentiles import percentile

SUCCESS = 0.999
SLOWER = 2.0
# Below this nobody notices, and on two busy cores it is noise: twice a
# baseline of five milliseconds is exceeded without any fault.
UNNOTICED = 0.05
STEP = 0.25
RESENT = 1.0


@dataclass(frozen=True, slots=True)
class Baseline:
    per_second: float
    p95: float
    median: float

    def or_as_in(self, calm: Baseline) -> Baseline:
        """The easier of both: the machine may have other work by now."""
        if not calm.per_second:
            return self
        return Baseline(
            per_second=min(self.per_second, calm.per_second),
            p95=max(self.p95, calm.p95),
            median=calm.median,
        )

    @property
    def limit(self) -> float:
        return max(SLOWER * self.p95, UNNOTICED)


def _save(attempt: Attempt) -> tuple[int, int, int]:
    return attempt.respondent, attempt.page, attempt.revision


@dataclass
class Timeline:
    """Attempts in the order in which they were answered."""

    moments: list[float] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)

    def add(self, attempts: Iterable[Attempt]) -> None:
        for attempt in sorted(attempts, key=lambda one: one.answered):
            # Logs of several processes arrive nearly in order.
            at = bisect.bisect(self.moments, attempt.answered)
            self.moments.insert(at, attempt.answered)
            self.attempts.insert(at, attempt)

    def between(self, begin: float, end: float) -> Sequence[Attempt]:
        first = bisect.bisect_left(self.moments, begin)
        return self.attempts[first : bisect.bisect_left(self.moments, end)]

    def failures(self, begin: float, end: float) -> Counter[str]:
        """What the attempts said that did not succeed.

        One that was cut, and sent again at once with success, is `resent`: a
        browser does that by itself, and its person never hears of it. Nobody
        waits for a packet that is late.
        """
        found = self.between(begin, end)
        saved = {_save(one): one.answered for one in found if one.succeeded}
        return Counter(
            "resent"
            if one.reply == "cut"
            and saved.get(_save(one), end) <= one.answered + RESENT
            else one.reply
            for one in found
            if not one.succeeded and one.kind != "late"
        )

    def baseline(self, begin: float, end: float) -> Baseline:
        seconds = [one.seconds for one in self.between(begin, end)]
        if len(seconds) < 2:
            return Baseline(0.0, 0.0, 0.0)
        return Baseline(
            per_second=len(seconds) / (end - begin),
            p95=percentile(seconds, 95),
            median=statistics.median(seconds),
        )

    def median(self, begin: float, end: float) -> float:
        seconds = [one.seconds for one in self.between(begin, end) if one.succeeded]
        return statistics.median(seconds) if seconds else 0.0

    def recovered(
        self, since: float, now: float, baseline: Baseline, window: float
    ) -> float | None:
        """Seconds after `since`; None as long as no window up to now is good."""
        begin = since
        while begin + window <= now:
            if self._is_good(begin, begin + window, baseline):
                return begin - since
            begin += STEP
        return None

    def _is_good(self, begin: float, end: float, baseline: Baseline) -> bool:
        found = self.between(begin, end)
        if len(found) < max(2, baseline.per_second * (end - begin) / 2):
            return False
        right = sum(one.succeeded for one in found)
        if right < SUCCESS * len(found):
            return False
        return percentile([one.seconds for one in found], 95) <= baseline.limit
