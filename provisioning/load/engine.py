"""One process, many connections: sends bytes, gives back replies or failures.

A failure has one of these names: `refused` (nobody listens, or the queue of
connections is full), `cut` (closed before the reply was whole), `garbled`
(not HTTP), `timeout`, and `abandoned` (by the caller).
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import itertools
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable

from provisioning.load.replies import Garbled, Reply, ReplyReader
from provisioning.load.target import Target

# A browser gives a save up after so long.
TIMEOUT = 30.0
SWEEP = 0.1
CHUNK = 262_144
clock = time.monotonic


class Exchange:
    """One request and what became of it. Times are those of `clock`."""

    __slots__ = (
        "answered",
        "connection",
        "data",
        "done",
        "failure",
        "reply",
        "scheduled",
        "sent",
    )

    def __init__(
        self, data: bytes, done: Callable[[Exchange], None], scheduled: float
    ) -> None:
        self.data = data
        self.done = done
        # When it was due: a slow server must not hide by making others late.
        self.scheduled = scheduled
        self.sent = 0.0
        self.answered = 0.0
        self.reply: Reply | None = None
        self.failure = ""
        self.connection: Connection | None = None


class Connection:
    __slots__ = (
        "_socket",
        "current",
        "engine",
        "number",
        "pending",
        "reader",
        "ready",
    )

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.reader = ReplyReader()
        self.current: Exchange | None = None
        self.pending = b""
        self.ready = False
        self._socket = socket.socket(engine.target.family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self.number = self._socket.fileno()
        if engine.target.family != socket.AF_UNIX:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connect(self) -> bool:
        """Begins; False where it can't."""
        error = self._socket.connect_ex(self.engine.target.address)
        # A unix socket's queue that is full says EAGAIN.
        self.ready = error == 0
        return error in (0, errno.EINPROGRESS)

    def send(self, exchange: Exchange) -> None:
        self.current = exchange
        exchange.connection = self
        exchange.sent = clock()
        self.pending = exchange.data
        if self.ready:
            self.flush()

    def flush(self) -> None:
        """Sends what the kernel takes; waits for the rest to be wanted."""
        try:
            sent = self._socket.send(self.pending)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.engine.lose(self, "cut")
            return
        self.pending = self.pending[sent:] if sent < len(self.pending) else b""
        if self.pending:
            self.engine.watch(self, select.EPOLLIN | select.EPOLLOUT)

    def connected(self) -> None:
        if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.engine.lose(self, "refused")
            return
        self.ready = True
        self.flush()

    def readable(self) -> None:
        try:
            data = self._socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        try:
            reply = self.reader.feed(data) if data else self.reader.ended()
        except Garbled:
            self.engine.lose(self, "garbled")
            return
        if reply is not None and self.current is not None:
            self.engine.answered(self, reply)
        elif reply is not None:
            self.engine.lose(self, "garbled")
        elif not data:
            self.engine.lose(self, "cut")

    def reset(self) -> None:
        """Close as a machine that fails: the server reads an error."""
        with contextlib.suppress(OSError):
            self._socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        self._socket.close()

    def close(self) -> None:
        self._socket.close()


class Engine:
    def __init__(
        self, target: Target, *, connections: int = 256, timeout: float = TIMEOUT
    ) -> None:
        """At most so many connections; further requests wait for a free one."""
        self.target = target
        self.limit = connections
        self.timeout = timeout
        self.asked = 0
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._free: list[Connection] = []
        self._waiting: deque[Exchange] = deque()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._unanswered = 0
        self._swept = 0.0
        self._stopped = False

    # What callers do

    def ask(
        self,
        data: bytes,
        done: Callable[[Exchange], None],
        *,
        scheduled: float | None = None,
    ) -> Exchange:
        """Send now, or as soon as a connection is free; `done` is called once.

        Latency counts from `scheduled`, which is now where none is given.
        """
        exchange = Exchange(data, done, clock() if scheduled is None else scheduled)
        self.asked += 1
        self._unanswered += 1
        if self._free:
            self._free.pop().send(exchange)
        elif len(self._connections) < self.limit:
            self._open(exchange)
        else:
            self._waiting.append(exchange)
        return exchange

    def abandon(self, exchange: Exchange) -> None:
        """Cut its connection, as a browser that is closed or out of reach."""
        connection = exchange.connection
        if connection is not None and connection.current is exchange:
            connection.reset()
            self._forget(connection)
            self._fail(exchange, "abandoned")

    def at(self, moment: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (moment, next(self._numbers), act))

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        self.at(clock() + seconds, act)

    @property
    def is_idle(self) -> bool:
        return not self._unanswered

    def stop(self) -> None:
        """`run` returns; what is unanswered stays so."""
        self._stopped = True

    def run(
        self,
        *,
        until: float | None = None,
        idle: Callable[[], bool] | None = None,
    ) -> None:
        """Until nothing is left to do, or that moment, or `stop`.

        Timers that are left when `idle` says yes, with no request under way,
        are forgotten.
        """
        self._stopped = False
        if until is not None:
            self.at(until, self.stop)
        poll = self._epoll.poll
        while not self._stopped and (self._unanswered or self._timers):
            if not self._unanswered and idle is not None and idle():
                self._timers.clear()
                return
            for number, event in poll(self._patience()):
                connection = self._connections.get(number)
                if connection is not None:
                    self._react(connection, event)
            self._act()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._free.clear()
        self._epoll.close()

    def drop_free_connections(self) -> None:
        for connection in list(self._free):
            self._forget(connection)

    # What connections report

    def watch(self, connection: Connection, events: int) -> None:
        self._epoll.modify(connection.number, events)

    def answered(self, connection: Connection, reply: Reply) -> None:
        exchange = connection.current
        connection.current = None
        if exchange is None:
            return
        exchange.answered = clock()
        exchange.reply = reply
        self._unanswered -= 1
        if reply.closing:
            self._forget(connection)
            self._replace()
        elif self._waiting:
            connection.send(self._waiting.popleft())
        else:
            self._free.append(connection)
        exchange.done(exchange)

    def lose(self, connection: Connection, failure: str) -> None:
        exchange = connection.current
        self._forget(connection)
        if exchange is not None:
            self._fail(exchange, failure)
        self._replace()

    # Inside

    def _patience(self) -> float:
        if not self._timers:
            return SWEEP
        return min(SWEEP, max(0.0, self._timers[0][0] - clock()))

    def _react(self, connection: Connection, event: int) -> None:
        if event & select.EPOLLOUT:
            self.watch(connection, select.EPOLLIN)
            if connection.ready:
                connection.flush()
            else:
                connection.connected()
            return
        if event & select.EPOLLERR and not connection.ready:
            self.lose(connection, "refused")
            return
        connection.readable()

    def _act(self) -> None:
        now = clock()
        while self._timers and self._timers[0][0] <= now and not self._stopped:
            heapq.heappop(self._timers)[2]()
        if now - self._swept >= SWEEP:
            self._swept = now
            self._sweep(now)

    def _sweep(self, now: float) -> None:
        for connection in list(self._connections.values()):
            exchange = connection.current
            if exchange is not None and now - exchange.sent > self.timeout:
                self.lose(connection, "timeout")
        while self._waiting and now - self._waiting[0].scheduled > self.timeout:
            self._fail(self._waiting.popleft(), "timeout")

    def _open(self, exchange: Exchange) -> None:
        connection = Connection(self)
        if not connection.connect():
            connection.close()
            exchange.sent = clock()
            # Not at once: whoever tries again on a failure would never return.
            self.later(0.001, lambda: self._fail(exchange, "refused"))
            return
        self._connections[connection.number] = connection
        events = select.EPOLLIN if connection.ready else select.EPOLLOUT
        self._epoll.register(connection.number, events)
        connection.send(exchange)

    def _replace(self) -> None:
        """A connection went: whoever waited for one gets another."""
        if self._waiting and len(self._connections) < self.limit:
            self._open(self._waiting.popleft())

    def _forget(self, connection: Connection) -> None:
        del self._connections[connection.number]
        if connection in self._free:
            self._free.remove(connection)
        connection.current = None
        # Which takes it out of epoll as well.
        connection.close()

    def _fail(self, exchange: Exchange, failure: str) -> None:
        exchange.answered = clock()
        exchange.failure = failure
        self._unanswered -= 1
        exchange.done(exchange)
