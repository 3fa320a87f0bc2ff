"""Delays between attempts: exponential, with jitter, for a number of attempts.

::

    DELAYS = RetryDelays(first=timedelta(minutes=3), attempts=6)
    delay = DELAYS.after(row.attempts)  # None: that was the last attempt
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryDelays:
    first: timedelta
    # All attempts, with the one before the first delay.
    attempts: int
    factor: int = 2
    longest: timedelta = timedelta(days=1)
    # The share by which a delay may be longer: what one outage has stopped does not
    # come back all at once.
    jitter: float = 0.1

    def after(self, attempt: int) -> timedelta | None:
        """Return the delay after an attempt, counted from 1; None after the last."""
        if attempt >= self.attempts:
            return None
        delay = min(self.first * self.factor ** (attempt - 1), self.longest)
        return delay * random.uniform(1, 1 + self.jitter)  # noqa: S311

    def __iter__(self) -> Iterator[float]:
        """Yield all delays, in seconds: one less than there are attempts."""
        for attempt in range(1, self.attempts):
            if (delay := self.after(attempt)) is not None:
                yield delay.total_seconds()

    def call(
        self, act: Callable[[], T], *, may_retry: Callable[[Exception], bool]
    ) -> T:
        """Call a function again, after delays, while its error may pass."""
        for seconds in self:
            try:
                return act()
            except Exception as error:
                if not may_retry(error):
                    raise
            time.sleep(seconds)
        return act()
