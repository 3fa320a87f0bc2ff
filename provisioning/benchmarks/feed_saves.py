"""Save pages alone, and while feeds are scanned one window after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event

from provisioning.benchmarks.feed_workers import is_true
from provisioning.benchmarks.phases import Size, mix, offer, rehearsal_of
from provisioning.benchmarks.stack import Stack
from provisioning.commands import Refusal, wait_until

TOGETHER = 32
# Of what the machine serves at most without scans: a survey day at night is quieter.
OFFERED_SHARE = 0.5
RUNNING = "SELECT count(*) > 0 FROM survey_feedscan WHERE state = 'running'"


def saves_beside_scans(
    stack: Stack, seconds: float, scan_all: Callable[[], float]
) -> dict[str, float]:
    """Offer the same rate alone and beside scans; `scan_all` returns its seconds."""
    size = Size(respondents=20_000, pages=20, seconds=seconds)
    over = Event()

    def scan_until_over() -> float:
        """Return the share of the time in which scans were running."""
        began, scanned = time.monotonic(), 0.0
        while not over.is_set():
            scanned += scan_all()
        return scanned / (time.monotonic() - began)

    with (
        rehearsal_of(stack, size, purpose="feeds") as rehearsal,
        ThreadPoolExecutor(1) as other,
    ):
        rate = OFFERED_SHARE * mix(rehearsal, TOGETHER)["mix_per_s"]
        alone = offer(rehearsal, rate)
        scanning = other.submit(scan_until_over)
        try:
            if not wait_until(partial(is_true, stack, RUNNING), seconds=60):
                raise Refusal("No scan has begun")
            beside = offer(rehearsal, rate)
        finally:
            over.set()
        share = scanning.result()
    return {
        "saves_alone_per_s": alone["saves_per_s"],
        "saves_beside_per_s": beside["saves_per_s"],
        "saves_kept": round(beside["saves_per_s"] / alone["saves_per_s"], 4),
        "requests_refused": beside["failed"],
        "p99_alone_ms": alone["p99"],
        "p99_beside_ms": beside["p99"],
        "scanning_share": round(share, 2),
    }
