"""Measure the cost of a run: processor time by server, PostgreSQL's counters."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from provisioning import processes
from provisioning.benchmarks.stack import Stack
from provisioning.installation.supervisor import Supervisor

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

# The superuser's statements are the benchmark's own.
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
    """Processor seconds of each server between `begin` and `end`."""

    def __init__(self, stack: Stack) -> None:
        with closing(Supervisor(stack.folder)) as supervisor:
            programs = [each for each in supervisor.programs() if each["pid"]]
        pids = {
            server: [each["pid"] for each in programs if each["group"] == group]
            for server, group in GROUPS.items()
        }
        self.groups = {server: found for server, found in pids.items() if found}
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
