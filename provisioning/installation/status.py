"""What runs, since when, with how much memory, and what misses a helper."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from provisioning.installation.home import Supervisor, addresses_of, workers_of
from provisioning.processes import memory_mb_with_descendants


def print_status(home: Path) -> int:
    supervisor = Supervisor(home)
    if not supervisor.is_running():
        print("Nothing is running; start it with provisioning/stack up")
        return 1
    programs = supervisor.programs()
    rows = [_row(program) for program in programs]
    print(f"{'program':<18}{'state':<10}{'pid':>8}{'up':>12}{'MB':>8}")
    for name, state, pid, up, memory in rows:
        print(f"{name:<18}{state:<10}{pid:>8}{up:>12}{memory:>8.0f}")
    print()
    for pool in ("taking", "console"):
        print(_pool(programs, pool))
    told = addresses_of(home)
    print(f"\n{_readiness(told['monitoring'])}\n\n{told['address']}")
    down = [
        program["name"] for program in programs if program["statename"] != "RUNNING"
    ]
    total = sum(memory for *_, memory in rows)
    verdict = f"not running: {', '.join(down)}" if down else "all running"
    print(f"{len(rows)} programs, {total:.0f} MB, {verdict}")
    return 1 if down else 0


def _row(program: dict[str, Any]) -> tuple[str, str, int, str, float]:
    seconds = program["now"] - program["start"] if program["pid"] else 0
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (
        program["name"],
        program["statename"].lower(),
        program["pid"],
        f"{hours}:{minutes:02}:{seconds:02}",
        memory_mb_with_descendants(program["pid"]),
    )


def _pool(programs: list[dict[str, Any]], pool: str) -> str:
    """Each of its workers is watched by this: it should stay where it is."""
    found = sorted(workers_of(programs, pool).values())
    if not found:
        return f"{pool}: no workers"
    return (
        f"{pool}: {len(found)} workers of {found[0]:.0f} to {found[-1]:.0f} MB,"
        f" {sum(found):.0f} MB together"
    )


def _readiness(monitoring: str) -> str:
    """What the application says of its helpers, where it says anything."""
    state = readyz(monitoring)
    if not state:
        return "/readyz says nothing"
    checks = state.get("checks", {})
    lines = [
        f"{name:<12}{'ok' if check['ok'] else 'AWAY':<6}{check['detail']}"
        for name, check in checks.items()
    ]
    return "\n".join([*lines, *state.get("degraded", [])])


def readyz(monitoring: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(  # noqa: S310
            f"{monitoring}readyz", timeout=5
        ) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        # 503: the state is its body all the same.
        with contextlib.suppress(ValueError), error:
            return json.load(error)
    except (OSError, ValueError, http.client.HTTPException):
        pass
    return {}
