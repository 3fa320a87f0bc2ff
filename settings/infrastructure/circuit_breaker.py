"""Not asking a helper that does not answer."""

from __future__ import annotations

import time
from collections.abc import Callable


class Breaker:
    """Opens after `failures` in a row, and lets one try through after `seconds`.

    Each process has its own: what it knows costs nothing to ask, and a helper
    that comes back is found by every process within `seconds`.
    """

    def __init__(
        self,
        *,
        failures: int = 2,
        seconds: float = 5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures = failures
        self._seconds = seconds
        self._clock = clock
        self._failed = 0
        self._next_try = 0.0

    @property
    def is_open(self) -> bool:
        return self._failed >= self._failures

    def allows(self) -> bool:
        if not self.is_open:
            return True
        now = self._clock()
        if now < self._next_try:
            return False
        # The others go on without until this one knows.
        self._next_try = now + self._seconds
        return True

    def succeeded(self) -> None:
        self._failed = 0

    def failed(self) -> None:
        self._failed += 1
        self._next_try = self._clock() + self._seconds
