"""Track whether the replica is up, and limit how long a reader waits for it."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from types import TracebackType

from django.db import connections

log = logging.getLogger(__name__)

REPLICA = "replica"
# Seconds between checks of a failed replica. A thread of its own makes them, so
# that no request waits for one.
RETRY_INTERVAL = 5.0
# Seconds that a check waits for an answer.
CHECK_TIMEOUT = 2.0

_fallback_timeout: ContextVar[float | None] = ContextVar("patience", default=None)
_reply_timeout: ContextVar[float | None] = ContextVar("limit", default=None)
_up = threading.Event()
_up.set()
_marking_down = threading.Lock()


def is_up() -> bool:
    return _up.is_set()


def mark_down() -> None:
    """Read the primary instead, until the replica answers again."""
    with _marking_down:
        if not _up.is_set():
            return
        _up.clear()
    threading.Thread(
        target=watch_replica, args=(_up,), name="replica", daemon=True
    ).start()


def mark_up() -> None:
    _up.set()


def watch_replica(up: threading.Event) -> None:
    while not up.wait(RETRY_INTERVAL):
        if replica_answers():
            up.set()


def replica_answers() -> bool:
    try:
        with (
            fail_after(CHECK_TIMEOUT),
            closing(connections.create_connection(REPLICA)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT 1")
        return True
    # An error that ended the thread would end the checks for ever.
    except Exception:
        log.info("The replica does not answer.", exc_info=True)
        return False


def reset_after_fork() -> None:
    # A forked worker inherits the state of its parent, but not the thread.
    global _up
    _up = threading.Event()
    _up.set()


os.register_at_fork(after_in_child=reset_after_fork)


def fallback_timeout() -> float | None:
    """Return after how many seconds the primary takes over; None means never.

    Reports and exports name the replica, outside of requests. They fail when it
    fails and are repeated later, so that they never load the primary.
    """
    return _fallback_timeout.get()


def reply_timeout() -> float | None:
    """Return after how many seconds a silent server's connection is closed."""
    return _fallback_timeout.get() or _reply_timeout.get()


@contextmanager
def fail_after(seconds: float) -> Iterator[None]:
    """Close silent connections without falling back to the primary."""
    token = _reply_timeout.set(seconds)
    try:
        yield
    finally:
        _reply_timeout.reset(token)


@contextmanager
def fall_back_to_primary(seconds: float) -> Iterator[None]:
    """Let the primary take over from a replica that fails or hangs."""
    token = _fallback_timeout.set(seconds)
    try:
        yield
    finally:
        _fallback_timeout.reset(token)


class Deadline:
    """Shut down a socket whose server has not answered in time.

    The driver waits for its socket for ever, and a server that is stopped
    applies no timeout of its own. Asynchronous connections and wait callbacks
    would limit the wait too, but the former have no transactions, and the
    latter would slow down every connection of the process. A thread costs
    about 0.1 ms, for a statement that a process sends once per survey.
    """

    def __init__(self, descriptor: int, seconds: float) -> None:
        self._descriptor = descriptor
        self._timer = threading.Timer(seconds, self._hang_up)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._over = False

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        # Afterwards the descriptor may be closed and reused for another socket.
        with self._lock:
            self._over = True

    def _hang_up(self) -> None:
        with self._lock:
            if not self._over:
                with socket.socket(fileno=os.dup(self._descriptor)) as connected:
                    connected.shutdown(socket.SHUT_RDWR)
