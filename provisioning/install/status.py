"""Print which programs run, since when, with how much memory, and what is missing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from provisioning.commands import fetch, print_table
from provisioning.install.stack_folder import addresses_of
from provisioning.install.supervisor import Supervisor, workers_of
from provisioning.processes import descendants_of, memory_mb


def print_status(folder: Path) -> int:
    supervisor = Supervisor(folder)
    if not supervisor.is_running():
        print("Nothing is running; start it with provisioning/stack up")
        return 1
    programs, rows, total = supervisor.programs(), [], 0.0
    for program in programs:
        pid, state = program["pid"], program["statename"].lower()
        megabytes = sum(map(memory_mb, [pid, *descendants_of(pid)])) if pid else 0.0
        uptime = timedelta(seconds=program["now"] - program["start"] if pid else 0)
        rows.append((program["name"], state, pid, uptime, f"{megabytes:.0f}"))
        total += megabytes
    print_table(("program", "state", "pid", "up", "MB"), rows)
    print()
    for pool in ("taking", "console"):
        print(pool_line(pool, list(workers_of(programs, pool).values())))
    addresses = addresses_of(folder)
    print(users_line(separates=bool(addresses.get("separates"))))
    print(
        "promise: A1, saved means flushed on the primary; if it is lost for good, so"
        " is what the replica had not received"
    )
    print("", *readiness_lines(readiness(addresses["monitoring"])), "", sep="\n")
    print(addresses["address"])
    down = supervisor.not_running()
    verdict = f"not running: {', '.join(down)}" if down else "all running"
    print(f"{len(programs)} programs, {total:.0f} MB, {verdict}")
    return 1 if down else 0


def pool_line(pool: str, workers: Sequence[float]) -> str:
    if not workers:
        return f"{pool}: no workers"
    return (
        f"{pool}: {len(workers)} workers of {min(workers):.0f} to"
        f" {max(workers):.0f} MB, {sum(workers):.0f} MB together"
    )


def users_line(*, separates: bool) -> str:
    if separates:
        return "users: a system user for each program"
    return "users: one system user for all programs; run as root to separate them"


def readiness_lines(state: dict[str, Any]) -> list[str]:
    if not state:
        return ["/readyz does not answer"]
    lines = [
        f"{name:<12}{'ok' if check['ok'] else 'AWAY':<6}{check['detail']}"
        for name, check in state.get("checks", {}).items()
    ]
    return [*lines, *state.get("degraded", [])]


def readiness(monitoring: str) -> dict[str, Any]:
    """Return what /readyz answers, also with 503; empty where it doesn't."""
    state: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        state = json.loads(fetch(f"{monitoring}readyz")[1])
    return state
