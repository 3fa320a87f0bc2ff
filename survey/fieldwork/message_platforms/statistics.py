"""Count the calls of each platform, for its page in the console and for /metrics.

Each process counts in memory, and adds its counts to Redis once a second, from a
thread of its own: a request sends no command for it.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from settings.monitoring.metrics import count_message  # noqa: TID251
from survey.fieldwork.message_platforms.store import Command, Store, message_store

PAUSE = 1.0
KEPT_HOURS = 7 * 24
# Upper bounds in milliseconds; the last one has none.
BOUNDS = (1, 2, 5, 10, 20, 50, 100, 250)
OUTCOMES = ("hit", "miss", "unknown", "unavailable")

_counts: Counter[tuple[int, str]] = Counter()
_lock = threading.Lock()
_timer: threading.Timer | None = None


def count_call(platform_id: int, outcome: str, seconds: float) -> None:
    """Count one call of a platform. `outcome` is one of OUTCOMES."""
    count_message(platform_id, outcome)
    milliseconds = seconds * 1000
    bound = next((each for each in BOUNDS if milliseconds <= each), 0)
    global _timer
    with _lock:
        _counts[platform_id, outcome] += 1
        _counts[platform_id, f"ms{bound}"] += 1
        if _timer is None:
            _timer = threading.Timer(PAUSE, send_counts)
            _timer.daemon = True
            _timer.start()


def send_counts() -> None:
    """Add this process's counts to Redis; keep none that can't be sent."""
    global _timer
    with _lock:
        counts, _timer = dict(_counts), None
        _counts.clear()
    store = message_store()
    if store is None or not counts:
        return
    hour = f"{timezone.now():%Y%m%d%H}"
    commands: list[Command] = [
        ("HINCRBY", _key(platform, hour), name, count)
        for (platform, name), count in counts.items()
    ]
    commands += [
        ("EXPIRE", _key(platform, hour), KEPT_HOURS * 3600)
        for platform in {platform for platform, _ in counts}
    ]
    with suppress(ConnectionError):
        store.pipeline(commands)


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one platform in some hours."""

    counts: Counter[str]

    @property
    def total(self) -> int:
        return sum(self.counts[outcome] for outcome in OUTCOMES)

    @property
    def hit_ratio(self) -> float | None:
        """Return the share of people that Redis had, in per cent."""
        looked_up = self.counts["hit"] + self.counts["miss"]
        return 100 * self.counts["hit"] / looked_up if looked_up else None

    @property
    def p95_ms(self) -> int | None:
        """Return the bound below which 95 of 100 calls were; None above the last."""
        timed = sum(self.counts[f"ms{bound}"] for bound in (*BOUNDS, 0))
        seen = 0
        for bound in BOUNDS:
            seen += self.counts[f"ms{bound}"]
            if timed and seen >= 0.95 * timed:
                return bound
        return None


def read_calls(store: Store, platform_id: int, *, hours: int) -> Calls:
    """Return the calls of the last hours of the clock. 1 round trip."""
    now = timezone.now()
    keys = [
        _key(platform_id, f"{now - timedelta(hours=back):%Y%m%d%H}")
        for back in range(hours)
    ]
    counts: Counter[str] = Counter()
    for flat in store.pipeline([("HGETALL", key) for key in keys]):
        for name, count in zip(flat[::2], flat[1::2], strict=True):
            counts[name.decode()] += int(count)
    return Calls(counts)


def _key(platform_id: int, hour: str) -> str:
    return f"calls:{platform_id}:{hour}"


def _forget() -> None:
    # A child process has no such thread, and its parent sends its own counts.
    global _timer
    _timer = None
    _counts.clear()


os.register_at_fork(after_in_child=_forget)
