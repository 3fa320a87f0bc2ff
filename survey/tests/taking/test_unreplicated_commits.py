"""Under promise A2 a commit waits for a standby; until then nothing is saved."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from typing import Any

import psycopg2
import pytest
from django.conf import settings
from django.db import connection
from psutil import pid_exists

from settings.tests.patience import eventually, patience
from survey.models import Respondent
from survey.people.rosters.batch_writes import write_batch
from survey.people.rosters.staging import PostgreSQLStaging
from survey.taking.storage import AnswerRow, Outcome, Receipt, save_page
from survey.taking.unavailable import ServiceUnavailable, run_with_retry

pytestmark = pytest.mark.django_db(transaction=True)

WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
ACTIVITY = """
SELECT concat_ws(' ', pid, usename, state, wait_event, left(query, 60))
FROM pg_stat_activity WHERE datname IS NOT NULL
"""
STANDBYS = "synchronous_standby_names"


class Server:
    """PostgreSQL, asked by its superuser."""

    def __init__(self, connection: Any) -> None:
        connection.autocommit = True
        self.connection = connection

    def ask(self, sql: str, *values: object) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values)
            return [row[0] for row in cursor] if cursor.description else []

    def waiting(self, *, other_than: int = 0) -> list[int]:
        """Return the process IDs of commits that wait for a standby."""
        return [pid for pid in self.ask(WAITING) if pid != other_than]

    def waiting_backend(self) -> int:
        """Wait until a commit waits for its standby, and return its process."""
        eventually(self.waiting, explain=self.activity)
        return self.waiting()[0]

    def activity(self) -> str:
        return "\n".join(self.ask(ACTIVITY))

    def start_waiting(self) -> None:
        self.ask(f"ALTER SYSTEM SET {STANDBYS} = 'away'")
        self.ask("SELECT pg_reload_conf()")

    def stop_waiting(self) -> None:
        self.ask(f"ALTER SYSTEM RESET {STANDBYS}")
        self.ask("SELECT pg_reload_conf()")


@pytest.fixture
def server(maya: Respondent) -> Iterator[Server]:
    """Let all commits wait for a standby that is away; Maya is stored already."""
    address = {"host": settings.SERVERS, "port": 5432, "user": "postgres"}
    with closing(psycopg2.connect(dbname="postgres", **address)) as connection:
        server = Server(connection)
        server.start_waiting()
        try:
            yield server
        finally:
            server.stop_waiting()


def save(respondent: Respondent, revision: int) -> Receipt:
    return save_page(
        administration_id=respondent.administration_id,
        respondent_id=respondent.pk,
        issue=1,
        revision=revision,
        rows=[AnswerRow(1, "a", "3")],
    )


def in_thread(threads: ThreadPoolExecutor, act: Callable[[], Any]) -> Any:
    def run() -> Any:
        with closing(connection):
            return act()

    return threads.submit(run)


def cancelled(
    server: Server, act: Callable[[int], Receipt]
) -> tuple[int, Receipt | None]:
    """Save until a commit waits, cancel its wait, and return what came of it."""
    # The setting takes a moment to arrive: the first saves may not wait.
    is_cancelled = threading.Event()

    def run() -> tuple[int, Receipt | None]:
        for revision in count(10):
            try:
                receipt = act(revision)
            except ServiceUnavailable:
                return revision, None
            if is_cancelled.is_set():
                return revision, receipt
        raise AssertionError

    with ThreadPoolExecutor(1) as threads:
        future = in_thread(threads, run)
        try:
            backend = server.waiting_backend()
        finally:
            is_cancelled.set()
        server.ask("SELECT pg_cancel_backend(%s)", backend)
        return future.result(patience(30))


def test_a_save_whose_wait_for_the_standby_was_cancelled_is_not_acknowledged(
    server, maya
):
    _, receipt = cancelled(server, lambda n: run_with_retry(lambda: save(maya, n)))
    assert receipt is None


def test_postgresql_itself_would_call_it_saved(server, maya):
    """The twin: the statement succeeds, and only a warning tells."""
    _, receipt = cancelled(server, lambda n: save(maya, n))
    assert receipt.outcome is Outcome.SAVED


def test_sending_it_again_waits_for_the_standby_too(server, maya):
    revision, _ = cancelled(server, lambda n: run_with_retry(lambda: save(maya, n)))
    with ThreadPoolExecutor(1) as threads:
        future = in_thread(
            threads, lambda: run_with_retry(lambda: save(maya, revision))
        )
        try:
            # Its rows are stored; it locks them, and that lock is committed.
            server.waiting_backend()
            assert not future.done()
        finally:
            server.stop_waiting()
        receipt = future.result(patience(30))
    assert (receipt.outcome, receipt.retried) == (Outcome.SAVED, True)


def test_a_connection_lost_at_commit_is_no_receipt(server, maya):
    revision, _ = cancelled(server, lambda n: run_with_retry(lambda: save(maya, n)))
    with ThreadPoolExecutor(1) as threads:
        future = in_thread(
            threads, lambda: run_with_retry(lambda: save(maya, revision + 1))
        )
        try:
            first = server.waiting_backend()
            server.ask("SELECT pg_terminate_backend(%s)", first)
            # Sent again over a new connection, where it waits as well.
            eventually(
                lambda: future.done() or server.waiting(other_than=first),
                explain=server.activity,
            )
            assert not future.done(), future.exception() or future.result()
        finally:
            server.stop_waiting()
        assert future.result(patience(30)).outcome is Outcome.SAVED


# Processes that end while the standby is away -------------------------------------


@pytest.fixture
def kept_connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep one connection to PostgreSQL itself, as the pooler does."""
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "PORT", 5432)
    yield
    connection.close()


def end_after_roster(server: Server, maya: Respondent) -> int:
    """Write a part of a roster, and tell the connection's process to end."""
    server.stop_waiting()
    [(process,)] = write_batch(
        lambda writer: (writer.fetch_all("SELECT pg_backend_pid()"), ())
    )
    server.start_waiting()
    # Now the setting has arrived.
    cancelled(server, lambda n: save(maya, n))
    server.ask("SELECT pg_terminate_backend(%s)", process)
    return process


def test_a_process_that_wrote_a_roster_ends_while_the_standby_is_away(
    server, maya, kept_connection
):
    process = end_after_roster(server, maya)
    eventually(lambda: not pid_exists(process), explain=server.activity)


def test_with_temporary_tables_it_would_wait_for_the_standby_at_its_end(
    server, maya, kept_connection, monkeypatch
):
    """The twin: so neither a failover nor a shutdown would come to an end."""
    monkeypatch.setattr(PostgreSQLStaging, "lifetime", "")
    process = end_after_roster(server, maya)
    eventually(lambda: process in server.waiting(), explain=server.activity)
    server.stop_waiting()
    eventually(lambda: not pid_exists(process), explain=server.activity)
