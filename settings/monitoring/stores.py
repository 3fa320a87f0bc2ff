"""Measure how long a request waits for each store.

For Prometheus, and for the log's line about a slow request. Statements are measured by
Django's wrappers of execution, which are there only while a request is measured; the
caches, commits, the broker and private files use `timed`. Of page saves every
sixteenth is measured, and counts as sixteen: that costs each of them half a
microsecond.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from settings.monitoring import logs

REPLICA, PRIMARY = "replica", "primary"
REDIS, MEMCACHED, RABBITMQ, FILES = "redis", "memcached", "rabbitmq", "files"
STORES = (PRIMARY, REPLICA, REDIS, MEMCACHED, RABBITMQ, FILES)
# One of so many page saves is measured.
SAMPLED = 16

Seconds = dict[str, float]
clock = time.perf_counter


def measured() -> Seconds | None:
    """Return the seconds of the request at hand by store, if it is measured."""
    trace = logs.current()
    return None if trace is None else trace.stores


@contextmanager
def timed(store: str) -> Iterator[None]:
    """Add the time of a block to the request at hand, if it is measured.

    Whether it succeeds or not: what failed was waited for as well. A store that is
    asked in place of this one, inside the block, has its own time.
    """
    seconds = measured()
    if seconds is None:
        yield
        return
    before, started = sum(seconds.values()), clock()
    try:
        yield
    finally:
        inside = sum(seconds.values()) - before
        seconds[store] = seconds.get(store, 0.0) + clock() - started - inside


def _watch(store: str) -> Callable[..., Any]:
    def execute(run: Callable[..., Any], *statement: Any) -> Any:
        with timed(store):
            return run(*statement)

    return execute


_on_primary, _on_replica = _watch(PRIMARY), _watch(REPLICA)


def begin(trace: logs.Trace) -> None:
    """Measure a request. `finish` has to follow."""
    trace.stores = {}
    for alias in connections:
        is_primary = alias == DEFAULT_DB_ALIAS
        wrappers = connections[alias].execute_wrappers
        wrappers.append(_on_primary if is_primary else _on_replica)


def finish() -> None:
    """Measure no further statement."""
    for alias in connections:
        wrappers = connections[alias].execute_wrappers
        for wrapper in (_on_primary, _on_replica):
            if wrapper in wrappers:
                wrappers.remove(wrapper)
