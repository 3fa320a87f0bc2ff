"""What a run cost: processor time by server, and what PostgreSQL counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from provisioning import processes
from provisioning.benchmarks.stack import Stack
from provisioning.load.target import Target

# Sockets of each server in the stack's folder `run`; nginx listens at a port.
SOCKETS: Mapping[str, tuple[str, ...]] = {
    "gunicorn taking": ("taking.sock",),
    "gunicorn console": ("console.sock",),
    "pgbouncer": (".s.PGSQL.6432",),
    "PostgreSQL": (".s.PGSQL.5432",),
    "replica": (".s.PGSQL.5433",),
    "Redis": ("redis.sock",),
    "Memcached": ("memcached.sock",),
}

# The superuser is the one who measures; its statements are not the product's.
COUNTERS = """
SELECT coalesce(sum(s.calls), 0),
       coalesce(sum(s.calls) FILTER (
           WHERE s.query ILIKE '%INSERT INTO survey_response%'), 0)
FROM pg_stat_statements s
JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database()
JOIN pg_roles r ON r.oid = s.userid AND r.rolname <> 'postgres';
SELECT d.xact_commit, w.wal_sync, w.wal_bytes
FROM pg_stat_database d CROSS JOIN pg_stat_wal w WHERE d.datname = current_database();
"""


@dataclass(frozen=True, slots=True)
class Counters:
    statements: int
    saves: int
    commits: int
    flushes: int
    wal_bytes: int

    @classmethod
    def now(cls, stack: Stack) -> Counters:
        (statements, saves), (commits, flushes, wal) = stack.sql(
            COUNTERS, failing="PostgreSQL does not count its statements"
        )
        return cls(*map(int, (statements, saves, commits, flushes, wal)))

    def since(self, before: Counters) -> Counters:
        return Counters(
            self.statements - before.statements,
            self.saves - before.saves,
            self.commits - before.commits,
            self.flushes - before.flushes,
            self.wal_bytes - before.wal_bytes,
        )


class Meter:
    """Processor seconds between two moments, by server."""

    def __init__(self, stack: Stack) -> None:
        self.groups = processes.listeners(
            stack.run, SOCKETS, {"nginx": _port(stack.target)}
        )
        self._before: dict[str, float] = {}
        self._machine = 0.0
        self.used: dict[str, float] = {}
        self.used_by_all = 0.0

    def begin(self) -> None:
        self._before = processes.cpu_seconds_by_group(self.groups)
        self._machine = processes.machine_cpu_seconds()

    def end(self) -> None:
        after = processes.cpu_seconds_by_group(self.groups)
        self.used = {
            # A server that was restarted in between counts from nothing.
            group: max(0.0, seconds - self._before.get(group, 0.0))
            for group, seconds in after.items()
        }
        self.used_by_all = processes.machine_cpu_seconds() - self._machine

    def per_request(self, requests: int, engine_seconds: float) -> dict[str, float]:
        """In µs; `rest` is what no server and no load engine accounts for."""
        used = {**self.used, "load engine": engine_seconds}
        rest = max(0.0, self.used_by_all - sum(used.values()))
        return {
            group: round(seconds * 1e6 / max(1, requests), 1)
            for group, seconds in {**used, "rest of the machine": rest}.items()
        }


def _port(target: Target) -> int:
    return target.address[1] if isinstance(target.address, tuple) else 0
