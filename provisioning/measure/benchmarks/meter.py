"""Measure the cost of a run: processor time by server, PostgreSQL's counters."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from provisioning import processes
from provisioning.installation.supervisor import Supervisor
from provisioning.measure.benchmarks.stack import Application, Stack, sql_file

VERSION_COMMANDS = {
    "nginx": ["/usr/sbin/nginx", "-v"],
    "pgbouncer": ["/usr/sbin/pgbouncer", "--version"],
    "redis": ["/usr/bin/redis-server", "--version"],
    "memcached": ["/usr/bin/memcached", "--version"],
}


def processor() -> str:
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text()
        if model := re.search(r"model name\s*: (.*)", text):
            return model[1].strip()
    return platform.machine()


def describe_machine(stack: Stack) -> dict[str, object]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    commands = {"python": [str(stack.python), "--version"], **VERSION_COMMANDS}
    versions = {name: version_in(_output(it)) for name, it in commands.items()}
    versions["postgresql"] = version_in(stack.sql("SHOW server_version")[0][0])
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30, 1),
        "kernel": platform.release(),
        "revision": revision_of(stack.checkout),
        "versions": versions,
        "load_average_before": round(os.getloadavg()[0], 2),
    }


def revision_of(checkout: Path) -> str:
    """Return the checkout's revision, with a plus where its files differ."""
    git = ["git", "-C", str(checkout)]
    revision = _output([*git, "rev-parse", "--short", "HEAD"]).strip()
    changed = _output([*git, "status", "--porcelain", "--untracked-files=no"])
    return f"{revision}+" if changed else revision


def version_in(text: str) -> str:
    """Return the first number with a dot in it; "" where there is none."""
    number = re.search(r"\d+(?:\.\d+)+", text)
    return number[0] if number else ""


def _output(command: list[str]) -> str:
    """Return what a command prints; "" where it fails or is missing."""
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=10,
            check=True,
        ).stdout
    return ""


# Each server's group in the supervisor.
GROUPS = {
    "gunicorn taking": "taking",
    "gunicorn console": "console",
    "pgbouncer": "pgbouncer",
    "PostgreSQL": "primary",
    "replica": "replica",
    "Redis": "redis",
    "Memcached": "memcached",
    "nginx": "nginx",
}


class Counters(NamedTuple):
    statements: int
    saves: int
    commits: int
    flushes: int
    wal_bytes: int

    @classmethod
    def now(cls, application: Application) -> Counters:
        rows = application.sql(
            sql_file("counters"), failing="PostgreSQL does not count its statements"
        )
        return cls(*(int(cell) for row in rows for cell in row))

    def since(self, before: Counters) -> Counters:
        return Counters(*(now - then for now, then in zip(self, before, strict=True)))


def log_position(application: Application) -> int:
    """Return how many bytes of log PostgreSQL has written since it was made."""
    [[position]] = application.sql("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
    return int(position)


class Meter:
    """Processor seconds of each server between `begin` and `end`."""

    def __init__(self, stack: Stack) -> None:
        with closing(Supervisor(stack.folder)) as supervisor:
            pids = {server: supervisor.pids(group) for server, group in GROUPS.items()}
        self.groups = {server: running for server, running in pids.items() if running}
        self.used: dict[str, float] = {}
        self.used_by_all = 0.0

    def begin(self) -> None:
        self._before = processes.cpu_seconds_by_group(self.groups)
        self._machine_before = processes.machine_cpu_seconds()

    def end(self) -> None:
        after = processes.cpu_seconds_by_group(self.groups)
        self.used = {
            # A server that was restarted in between counts from nothing.
            group: max(0.0, seconds - self._before.get(group, 0.0))
            for group, seconds in after.items()
        }
        self.used_by_all = processes.machine_cpu_seconds() - self._machine_before

    def per_request(self, requests: int, engine_seconds: float) -> dict[str, float]:
        """Return µs of each server, of the load engine and of everything else."""
        used = {**self.used, "load engine": engine_seconds}
        used["rest of the machine"] = max(0.0, self.used_by_all - sum(used.values()))
        return {
            group: round(seconds * 1e6 / max(1, requests), 1)
            for group, seconds in used.items()
        }
