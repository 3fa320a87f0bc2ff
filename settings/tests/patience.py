"""Time-outs for tests, as long as this machine needs them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable


def patience(seconds: float) -> float:
    """Return `seconds` of a quiet machine, multiplied for the one at hand.

    For upper bounds only: how long to wait for what must happen. The factor
    is measured before pytest starts; see `provisioning.measure.calibration`.
    """
    return seconds * float(os.environ.get("GROUNDSWELL_TEST_PATIENCE", "1"))


def eventually(
    holds: Callable[[], object],
    seconds: float = 10,
    *,
    explain: Callable[[], object] = lambda: "",
) -> None:
    """Wait until `holds()`, for what no element of a page shows.

    A failure shows what `explain` returns.
    """
    deadline = time.monotonic() + patience(seconds)
    while not holds():
        assert time.monotonic() < deadline, explain()
        time.sleep(0.1)
