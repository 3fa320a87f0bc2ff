"""Whether this process reads the replica, and how long a reader waits for it."""

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
# A replica that failed is asked again after so many seconds, by a thread of
# its own: no request waits to find out.
PAUSE = 5.0
# That thread waits for it so long.
LOOK = 2.0

_patience: ContextVar[float | None] = ContextVar("patience", default=None)
_limit: ContextVar[float | None] = ContextVar("limit", default=None)
_up = threading.Event()
_up.set()
_marking = threading.Lock()


def is_up() -> bool:
    return _up.is_set()


def mark_down() -> None:
    """From now on the primary is read, until the replica answers again."""
    with _marking:
        if not _up.is_set():
            return
        _up.clear()
    threading.Thread(target=_watch, args=(_up,), name="replica", daemon=True).start()


def mark_up() -> None:
    _up.set()


def _watch(up: threading.Event) -> None:
    while not up.wait(PAUSE):
        if _answers():
            up.set()


def _answers() -> bool:
    """Whatever it fails with: without its thread nobody would ask again."""
    try:
        with (
            _limited(LOOK),
            closing(connections.create_connection(REPLICA)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT 1")
        return True
    except Exception:
        log.info("replica", exc_info=True)
        return False


def _start_anew() -> None:
    # A worker that is forked has its parent's state, but not its thread.
    global _up
    _up = threading.Event()
    _up.set()


os.register_at_fork(after_in_child=_start_anew)


def patience() -> float | None:
    """Seconds until the primary takes over; None where nobody is waiting.

    A report or an export asks for the replica by name, outside of requests.
    It fails with it, and is done later: the primary has people to serve.
    """
    return _patience.get()


def limit() -> float | None:
    """Seconds until a server that says nothing is hung up on."""
    return _patience.get() or _limit.get()


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Inside, a server that hangs fails; the primary does not take over."""
    token = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def patient(seconds: float) -> Iterator[None]:
    """Inside, the primary takes over from a replica that fails or hangs."""
    token = _patience.set(seconds)
    try:
        yield
    finally:
        _patience.reset(token)


class Deadline:
    """Hangs up on the server of a socket that has not answered in time.

    The driver waits for its socket without an end, and a server that is
    stopped keeps no timeout of its own. Asynchronous connections and wait
    callbacks would bound the wait too, but the one knows no transactions, and
    the other would slow every connection of the process. A thread costs about
    0.1 ms, for a statement that a process sends once for each survey.
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
        # Once over, the descriptor may be closed and soon be somebody else's.
        with self._lock:
            self._over = True

    def _hang_up(self) -> None:
        with self._lock:
            if not self._over:
                with socket.socket(fileno=os.dup(self._descriptor)) as connected:
                    connected.shutdown(socket.SHUT_RDWR)
