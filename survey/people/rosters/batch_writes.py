"""Write a roster's changes in short transactions, so that page saves go on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from django.db import OperationalError, connection
from django.db.transaction import atomic

from accounts.retry_delays import RetryDelays
from survey.fieldwork.message_platforms.hooks import people_changed
from survey.people.rosters.staging import (
    BATCH_TABLES,
    PostgreSQLStaging,
    SQLiteStaging,
    Staging,
)

T = TypeVar("T")

# A page save waits for one batch at most, and its own lock_timeout is a second.
# A batch that meets a lock itself releases its rows and tries again.
BATCH_LOCK_TIMEOUT = "300ms"
DELAYS = RetryDelays(
    first=timedelta(milliseconds=50), attempts=40, longest=timedelta(seconds=1)
)
# Lock not available, deadlock, statement timeout, serialization failure.
_RETRIED = frozenset(("55P03", "40P01", "57014", "40001"))
# On two cores: one inserts a batch while another prepares the next.
WRITERS = 2


def write_batch(write: Callable[[Staging], tuple[T, Collection[int]]]) -> T:
    """Run `write` in a short transaction; retry while rows are locked.

    It returns its result and the keys of the people whom it changed, of whom message
    platforms are told after the commit.
    """
    return DELAYS.call(lambda: _write_once(write), may_retry=_is_locked)


def _write_once(write: Callable[[Staging], tuple[T, Collection[int]]]) -> T:
    with atomic(), connection.cursor() as cursor:
        writer: Staging
        if connection.vendor == "sqlite":
            writer = SQLiteStaging(cursor)
        else:
            writer = PostgreSQLStaging(cursor)
            writer.execute(f"SET LOCAL lock_timeout = '{BATCH_LOCK_TIMEOUT}'")
        for table, columns in BATCH_TABLES.items():
            writer.execute(f"DROP TABLE IF EXISTS {table}")
            writer.create_table(table, columns)
        result, people = write(writer)
        if people:
            people_changed(people)
        return result


def _is_locked(error: Exception) -> bool:
    if not isinstance(error, OperationalError):
        return False
    if connection.vendor == "sqlite":
        return "locked" in str(error)
    return getattr(error.__cause__, "pgcode", None) in _RETRIED


@contextmanager
def parallel_writes() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Yield a function that runs writes on several connections at once.

    It blocks while too many are waiting, and raises what one of them raised.
    With a single connection (SQLite, or a caller's transaction) each write
    runs at once.
    """
    if connection.vendor == "sqlite" or connection.in_atomic_block:
        yield lambda write: write()
        return
    pending: deque[Future[None]] = deque()

    def write_and_close(write: Callable[[], None]) -> None:
        try:
            write()
        finally:
            # Nothing else would close the connection of this thread.
            connection.close()

    def submit(write: Callable[[], None]) -> None:
        while len(pending) > WRITERS:
            pending.popleft().result()
        pending.append(pool.submit(write_and_close, write))

    with ThreadPoolExecutor(WRITERS, thread_name_prefix="roster") as pool:
        yield submit
        while pending:
            pending.popleft().result()
