"""Processes by what /proc says of them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from provisioning.commands import is_alive


def children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, thread.read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    found = children(pid)
    return found + [one for child in found for one in descendants(child)]


def parent(pid: int) -> int:
    """0 where it has gone."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        status = Path(f"/proc/{pid}/stat").read_text()
        # The name in parentheses may hold spaces, and parentheses.
        return int(status.rpartition(")")[2].split()[1])
    return 0


def title(pid: int) -> str:
    with contextlib.suppress(OSError):
        content = Path(f"/proc/{pid}/cmdline").read_bytes()
        return content.replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def is_below(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        pid = parent(pid)
    return False


def send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def kill_together(pids: Sequence[int]) -> None:
    """No one of them may see another one die: first all are stopped."""
    send(pids, signal.SIGSTOP)
    send(pids, signal.SIGKILL)


def wait_until_gone(pids: Iterable[int], *, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    left = list(pids)
    while left and time.monotonic() < deadline:
        left = [pid for pid in left if is_alive(pid)]
        time.sleep(0.02)
    return not left
