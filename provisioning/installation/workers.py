"""The workers of gunicorn's pools, and the memory that each of them costs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path("/proc", str(pid)).glob("task/*/children"):
        # It may end while it is looked at.
        with suppress(OSError):
            found += map(int, thread.read_text().split())
    return found


def megabytes_of(pid: int) -> float:
    """Shared pages divided by those who share them (PSS); 0 where it has gone."""
    with suppress(OSError, IndexError):
        rollup = Path("/proc", str(pid), "smaps_rollup").read_text()
        return int(rollup.partition("Pss:")[2].split()[0]) / 1024
    return 0.0


def megabytes_of_all(program: int) -> float:
    """Of a program with all that it has started."""
    total, waiting = 0.0, [program] if program else []
    while waiting:
        pid = waiting.pop()
        total += megabytes_of(pid)
        waiting += children_of(pid)
    return total


def workers_of(programs: Iterable[Mapping[str, Any]], pool: str) -> dict[int, float]:
    """Worker -> its megabytes, for all masters of a pool."""
    masters = [one["pid"] for one in programs if one["group"] == pool and one["pid"]]
    found = {
        worker: megabytes_of(worker)
        for master in masters
        for worker in children_of(master)
    }
    return {worker: megabytes for worker, megabytes in found.items() if megabytes}


def started_at(pid: int) -> float:
    """When it was forked, in seconds since the machine started; to 10 ms."""
    text = Path("/proc", str(pid), "stat").read_text()
    # The name in parentheses may hold spaces, and parentheses.
    return int(text.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
