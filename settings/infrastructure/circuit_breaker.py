"""Stop calling a server that does not respond."""

from __future__ import annotations

import time
from collections.abc import Callable


class CircuitBreaker:
    """Circuit breaker that opens after `failures` consecutive failures.

    Every `seconds`, one call is let through to test the server. The state is
    kept per process, so checking it costs nothing, and each process notices
    within `seconds` that the server is back.
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
        # Other callers are refused until this call has a result.
        self._next_try = now + self._seconds
        return True

    def succeeded(self) -> None:
        self._failed = 0

    def failed(self) -> None:
        self._failed += 1
        self._next_try = self._clock() + self._seconds
