"""Send requests over many kept connections, in one process.

A failed exchange has one of these failures: `refused` (no listener, or its
queue is full), `cut` (closed before the reply was complete), `garbled` (not
HTTP), `timeout`, and `abandoned` (by the caller).
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import itertools
import random
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable

from provisioning.load.replies import InvalidReply, Reply, ReplyReader
from provisioning.load.target import Target

# A browser gives up a save after so many seconds.
TIMEOUT = 30.0
# How often time-outs are looked for.
SWEEP = 0.1
CHUNK = 262_144
clock = time.monotonic


class Exchange:
    """A request and its reply or failure. Times are those of `clock`."""

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
        # Latency counts from here: a slow server must not look fast because
        # it delayed the requests that were due after it.
        self.scheduled = scheduled
        self.sent = 0.0
        self.answered = 0.0
        self.reply: Reply | None = None
        self.failure = ""
        self.connection: Connection | None = None


class Connection:
    __slots__ = ("_socket", "current", "engine", "number", "pending", "reader", "ready")

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
        """Start connecting; return whether that is possible."""
        # A Unix socket whose queue is full gives EAGAIN.
        error = self._socket.connect_ex(self.engine.target.address)
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

    def handle(self, event: int) -> None:
        if event & select.EPOLLOUT:
            self.engine.watch(self, select.EPOLLIN)
            if not self.ready and self._socket.getsockopt(
                socket.SOL_SOCKET, socket.SO_ERROR
            ):
                self.engine.lose(self, "refused")
                return
            self.ready = True
            self.flush()
        elif event & select.EPOLLERR and not self.ready:
            self.engine.lose(self, "refused")
        else:
            self._receive()

    def _receive(self) -> None:
        try:
            data = self._socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        try:
            reply = self.reader.feed(data) if data else self.reader.end()
        except InvalidReply:
            self.engine.lose(self, "garbled")
            return
        if reply is not None and self.current is not None:
            self.engine.answer(self, self.current, reply)
        elif reply is not None:
            self.engine.lose(self, "garbled")
        elif not data:
            self.engine.lose(self, "cut")

    def reset(self) -> None:
        """Close with a reset, as a device that loses its network."""
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
        """Use at most `connections`; further requests wait for a free one."""
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
        self._stopped = False

    # Called by those who use it

    def ask(
        self,
        data: bytes,
        done: Callable[[Exchange], None],
        *,
        scheduled: float | None = None,
    ) -> Exchange:
        """Send now, or as soon as a connection is free; `done` is called once."""
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
        """Reset the connection of an exchange, as a browser that is closed."""
        connection = exchange.connection
        if connection is not None and connection.current is exchange:
            connection.reset()
            self._forget(connection)
            self._fail(exchange, "abandoned")

    def at(self, moment: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (moment, next(self._numbers), act))

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        self.at(clock() + seconds, act)

    def stop(self) -> None:
        """Let `run` return; what is unanswered stays so."""
        self._stopped = True

    def run(
        self,
        *,
        until: float | None = None,
        idle: Callable[[], bool] | None = None,
    ) -> None:
        """Run until nothing is left to do, or that moment, or `stop`.

        Remaining timers are dropped when no request is under way and `idle`
        returns True.
        """
        self._stopped = False
        if until is not None:
            self.at(until, self.stop)
        poll, next_sweep = self._epoll.poll, 0.0
        while not self._stopped and (self._unanswered or self._timers):
            if not self._unanswered and idle is not None and idle():
                self._timers.clear()
                return
            wait = SWEEP
            if self._timers:
                wait = min(SWEEP, max(0.0, self._timers[0][0] - clock()))
            for number, event in poll(wait):
                connection = self._connections.get(number)
                if connection is not None:
                    connection.handle(event)
            now = clock()
            while self._timers and self._timers[0][0] <= now and not self._stopped:
                heapq.heappop(self._timers)[2]()
            if now >= next_sweep:
                next_sweep = now + SWEEP
                self._end_overdue_exchanges(now)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._free.clear()
        self._epoll.close()

    def drop_free_connections(self) -> None:
        for connection in list(self._free):
            self._forget(connection)

    # Called by connections

    def watch(self, connection: Connection, events: int) -> None:
        self._epoll.modify(connection.number, events)

    def answer(self, connection: Connection, exchange: Exchange, reply: Reply) -> None:
        connection.current = None
        exchange.answered = clock()
        exchange.reply = reply
        self._unanswered -= 1
        if reply.closing:
            self._forget(connection)
            self._replace_connection()
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
        self._replace_connection()

    # Internals

    def _end_overdue_exchanges(self, now: float) -> None:
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
            # Not at once: a caller that retries would recurse for ever.
            self.later(0.001, lambda: self._fail(exchange, "refused"))
            return
        self._connections[connection.number] = connection
        events = select.EPOLLIN if connection.ready else select.EPOLLOUT
        self._epoll.register(connection.number, events)
        connection.send(exchange)

    def _replace_connection(self) -> None:
        if self._waiting and len(self._connections) < self.limit:
            self._open(self._waiting.popleft())

    def _forget(self, connection: Connection) -> None:
        del self._connections[connection.number]
        if connection in self._free:
            self._free.remove(connection)
        connection.current = None
        # Closing takes it out of epoll too.
        connection.close()

    def _fail(self, exchange: Exchange, failure: str) -> None:
        exchange.answered = clock()
        exchange.failure = failure
        self._unanswered -= 1
        exchange.done(exchange)


def schedule_arrivals(
    engine: Engine,
    act: Callable[[float], None],
    *,
    rate: float,
    begin: float,
    seconds: float,
    seed: int = 0,
) -> None:
    """Call `act(due)` at exponential intervals, `rate` times a second on average.

    epoll waits for whole milliseconds, so that arrivals come in small groups.
    Latency counts from the moment each was due, which includes that wait.
    """
    chance = random.Random(seed)  # noqa: S311

    def arrive(due: float) -> None:
        following = due + chance.expovariate(rate)
        if following < begin + seconds:
            engine.at(following, lambda: arrive(following))
        act(due)

    engine.at(begin, lambda: arrive(begin))
