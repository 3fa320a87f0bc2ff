"""Stop, hang, pause and query the test servers' streaming replica.

A test must restore the replica, which it shares with other tests.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import psutil
import psycopg2
from django.conf import settings
from django.db import connection, connections
from django.test import override_settings

from provisioning.installation.supervisor import Supervisor
from settings.tests.patience import patience
from survey.database.replica import health

PRIMARY, REPLICA = 5432, 5433
# What may keep a replica from replaying: the sender, the receiver, a pause, a
# statement that still reads what was dropped.
STATE = {
    PRIMARY: (
        "SELECT pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()",
        "SELECT active_pid, restart_lsn, wal_status FROM pg_replication_slots",
        "SELECT pid, state, sent_lsn, flush_lsn, replay_lsn FROM pg_stat_replication",
    ),
    REPLICA: (
        "SELECT pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn(),"
        " pg_get_wal_replay_pause_state()",
        "SELECT pid, status, flushed_lsn FROM pg_stat_wal_receiver",
        "SELECT pid, backend_type, state, wait_event, xact_start, left(query, 80)"
        " FROM pg_stat_activity",
    ),
}


def ask(port: int, sql: str, *, database: str = "postgres") -> Any:
    """Run SQL as superuser, without pgbouncer."""
    connected = psycopg2.connect(
        host=settings.SERVERS, port=port, dbname=database, user="postgres"
    )
    with closing(connected):
        connected.autocommit = True
        with connected.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []


class Replica:
    def ask(self, sql: str, *, database: str = "postgres") -> Any:
        return ask(REPLICA, sql, database=database)

    def stop(self) -> None:
        # It restarts at the last checkpoint that it received, and replaying what
        # a thousand tests have emptied since then takes long.
        ask(PRIMARY, "CHECKPOINT")
        self.catch_up()
        with self._supervisor() as supervisor:
            supervisor.calls.stopProcess("replica")

    def start(self) -> None:
        with self._supervisor() as supervisor:
            supervisor.calls.startProcess("replica")
        wait_until(self.replica_answers, explain=self.describe)

    def replica_answers(self) -> bool:
        try:
            return bool(self.ask("SELECT 1"))
        except psycopg2.OperationalError:
            return False

    def hang(self) -> None:
        for process in self._processes():
            # A backend may have ended since it was listed.
            with suppress(psutil.NoSuchProcess):
                process.suspend()

    def resume(self) -> None:
        for process in self._processes():
            # A backend may have ended since it was listed.
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def _processes(self) -> list[psutil.Process]:
        with self._supervisor() as supervisor:
            pid = supervisor.calls.getProcessInfo("replica")["pid"]
        postmaster = psutil.Process(pid)
        return [postmaster, *postmaster.children()]

    def _supervisor(self) -> closing[Supervisor]:
        folder = Path(settings.SERVERS)
        return closing(Supervisor(folder, run=folder))

    def stop_replaying(self) -> None:
        self.catch_up()
        self.ask("SELECT pg_wal_replay_pause()")
        paused = "SELECT pg_get_wal_replay_pause_state() = 'paused'"
        wait_until(lambda: self.ask(paused) == [(True,)], explain=self.describe)

    def catch_up(self) -> None:
        self.ask("SELECT pg_wal_replay_resume()")
        # The end of the log may be in the middle of a record of an open transaction,
        # at the end of a page. The replica replays it when the rest is flushed too,
        # and an idle primary takes 20 seconds for that: this commits a record.
        record = "SELECT pg_logical_emit_message(true, 'catch up', '')"
        ((position,),) = ask(PRIMARY, record)
        reached = f"SELECT pg_last_wal_replay_lsn() >= '{position}'"
        wait_until(lambda: self.ask(reached) == [(True,)], explain=self.describe)

    def describe(self) -> str:
        """Return what both servers and the replica's log say about replication."""
        lines = []
        with suppress(psutil.NoSuchProcess):
            lines += [f"{each.pid} {each.status()}" for each in self._processes()]
        for port, statements in STATE.items():
            for sql in statements:
                try:
                    lines.append(f"{port}: {sql}: {ask(port, sql)}")
                except psycopg2.Error as error:
                    lines.append(f"{port}: {error}")
        logs = sorted(
            Path(settings.SERVERS, "log", "replica").iterdir(),
            key=lambda path: path.stat().st_mtime,
        )
        lines += logs[-1].read_text(errors="replace").splitlines()[-20:]
        return "\n".join(lines)


def wait_until(
    is_so: Callable[[], bool],
    seconds: float = 60,
    *,
    explain: Callable[[], str] = lambda: "",
) -> None:
    deadline = time.monotonic() + patience(seconds)
    while not is_so():
        assert time.monotonic() < deadline, f"timed out {explain()}"
        time.sleep(0.02)


@contextmanager
def replica_alias() -> Iterator[None]:
    """Configure the alias `replica`: the test database on the other server."""
    settings.DATABASES[health.REPLICA] = {
        **connection.settings_dict,
        "ENGINE": "survey.database.replica",
        "PORT": REPLICA,
        "OPTIONS": {"connect_timeout": 1},
        # Django must not empty it after a test.
        "TEST": {**connection.settings_dict["TEST"], "MIRROR": "default"},
    }
    try:
        yield
    finally:
        connections[health.REPLICA].close()
        del connections[health.REPLICA]
        del settings.DATABASES[health.REPLICA]


@contextmanager
def replica_routing() -> Iterator[None]:
    # Another test may have marked its replica down a moment ago.
    health.mark_up()
    try:
        with override_settings(
            DATABASE_ROUTERS=["survey.database.routers.ForcedReadRouter"],
            MASTER_DATABASE="default",
            DATABASE_POOL={health.REPLICA: 1},
        ):
            yield
    finally:
        health.mark_up()
        connections[health.REPLICA].close()


class StatementCounter:
    """Counts the statements of both servers, from their own statistics."""

    servers: ClassVar = {"primary": PRIMARY, "replica": REPLICA}

    def __init__(self) -> None:
        self.database = connection.settings_dict["NAME"]

    def during(self, act: Callable[[], Any]) -> dict[str, Counter[str]]:
        before = self._calls()
        act()
        after = self._calls()
        return {name: after[name] - before[name] for name in after}

    def _calls(self) -> dict[str, Counter[str]]:
        return {name: self._calls_of(name) for name in self.servers}

    def _calls_of(self, name: str) -> Counter[str]:
        try:
            rows = ask(
                self.servers[name],
                "SELECT query, calls FROM pg_stat_statements s"
                " JOIN pg_database d ON d.oid = s.dbid"
                f" WHERE d.datname = '{self.database}'"
                " AND query NOT LIKE '%pg_stat_statements%'",
                database="template1",
            )
        except psycopg2.OperationalError:
            return Counter()
        counted: Counter[str] = Counter()
        for query, calls in rows:
            counted[name_of(query)] += calls
        return counted


def name_of(query: str) -> str:
    """Shorten a statement, such as `read survey_respondent`."""
    words = query.replace('"', " ").replace("(", " ").split()
    for verb, before in (("save", "INTO"), ("change", "UPDATE"), ("read", "FROM")):
        tables = [b for a, b in zip(words, words[1:], strict=False) if a == before]
        tables = [table for table in tables if table.startswith("survey_")]
        if tables:
            return f"{verb} {tables[0]}"
    return query
