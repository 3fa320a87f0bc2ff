"""Compare this machine with a quiet one, for the time-outs of tests."""

from __future__ import annotations

import time
from functools import cache

# Seconds that the loop takes on a quiet machine of two 3 GHz cores: long enough
# for other processes to get their turns meanwhile.
REFERENCE = 0.3


@cache
def slowness() -> float:
    """Return how many times slower than the reference this machine is now."""
    started = time.perf_counter()
    total = 0
    for number in range(6_000_000):
        total += number
    return max(1.0, (time.perf_counter() - started) / REFERENCE)
