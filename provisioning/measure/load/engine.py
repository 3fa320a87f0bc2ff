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
import math
import random
import select
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from provisioning.measure.load.replies import InvalidReply, Reply, ReplyReader
from provisioning.measure.load.target import Target

# A browser gives up a save after so many seconds.
TIMEOUT = 30.0
# How often time-outs are looked for.
SWEEP = 0.1
CHUNK = 262_144
clock = time.monotonic


@dataclass(slots=True, eq=False)
class Exchange:
    """A request and its reply or failure. Times are those of `clock`."""

    data: bytes
    done: Callable[[Exchange], None]
    # Latency counts from here: a slow server must not look fast because it
    # delayed the requests that were due after it.
    scheduled: float
    sent: float = 0.0
    answered: float = 0.0
    reply: Reply | None = None
    failure: str = ""


class Connection:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.reader = ReplyReader()
        self.current: Exchange | None = None
        self._socket = socket.socket(engine.target.family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self.number = self._socket.fileno()
        if engine.target.family != socket.AF_UNIX:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        error = self._socket.connect_ex(engine.target.address)
        self.is_open = error == 0
        # A Unix socket whose queue is full gives EAGAIN.
        self.is_refused = error not in (0, errno.EINPROGRESS)

    def send(self, exchange: Exchange) -> None:
        self.current = exchange
        exchange.sent = clock()
        if self.is_open:
            self._flush(exchange)

    def _flush(self, exchange: Exchange) -> None:
        # A request is smaller than the socket's buffer, which is empty.
        try:
            is_sent = self._socket.send(exchange.data) == len(exchange.data)
        except OSError:
            is_sent = False
        if not is_sent:
            self.engine.lose(self, "cut")

    def handle(self, event: int) -> None:
        if self.is_open:
            self._receive()
        elif event & select.EPOLLERR:
            self.engine.lose(self, "refused")
        else:
            self._begin()

    def _begin(self) -> None:
        self.is_open = True
        self.engine.watch(self, select.EPOLLIN)
        if self.current is not None:
            self._flush(self.current)

    def _read(self) -> bytes:
        return self._socket.recv(CHUNK)

    def _receive(self) -> None:
        try:
            data = self._read()
            reply = self.reader.feed(data) if data else None
        except BlockingIOError:
            return
        except OSError:
            data = b""
        except InvalidReply:
            self.engine.lose(self, "garbled")
            return
        if not data:
            self.engine.lose(self, "cut")
        elif reply is not None and self.current is not None:
            self.engine.answer(self, self.current, reply)
        elif reply is not None:
            self.engine.lose(self, "garbled")

    def close(self, *, reset: bool = False) -> None:
        """Close, or reset as a device does that loses its network."""
        if reset:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
        self._socket.close()


class TlsConnection(Connection):
    """A connection that is encrypted once both sides have shown who they are."""

    _socket: ssl.SSLSocket

    def _begin(self) -> None:
        target = self.engine.target
        assert target.tls is not None  # noqa: S101
        try:
            if not isinstance(self._socket, ssl.SSLSocket):
                self._socket = target.tls.wrap_socket(
                    self._socket,
                    server_hostname=target.host,
                    do_handshake_on_connect=False,
                )
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            self.engine.watch(self, select.EPOLLIN)
        except ssl.SSLWantWriteError:
            self.engine.watch(self, select.EPOLLOUT)
        except OSError:
            self.engine.lose(self, "refused")
        else:
            super()._begin()

    def _read(self) -> bytes:
        try:
            data = self._socket.recv(CHUNK)
            # A record that was read in part makes epoll report nothing.
            while data and self._socket.pending():
                data += self._socket.recv(CHUNK)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None
        return data


class Engine:
    def __init__(
        self, target: Target, *, connections: int = 256, timeout: float = TIMEOUT
    ) -> None:
        """Use at most `connections`; further requests wait for a free one."""
        self.target = target
        self.limit = connections
        self.timeout = timeout
        self.asked = 0
        self.unanswered = 0
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._free: list[Connection] = []
        self._waiting: deque[Exchange] = deque()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
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
        self.unanswered += 1
        if self._free:
            self._free.pop().send(exchange)
        elif len(self._connections) < self.limit:
            self._open(exchange)
        else:
            self._waiting.append(exchange)
        return exchange

    def exchange(self, data: bytes) -> Exchange:
        """Send one request, and return it with its reply or failure."""
        exchange = self.ask(data, lambda answered: None)
        self.run()
        return exchange

    def abandon(self) -> None:
        """Reset all connections under way, as browsers that are closed."""
        for connection in list(self._connections.values()):
            if exchange := connection.current:
                self._forget(connection, reset=True)
                self._fail(exchange, "abandoned")

    def at(self, moment: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (moment, next(self._numbers), act))

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        self.at(clock() + seconds, act)

    def stop(self) -> None:
        """Let `run` return; what is unanswered stays so."""
        self._stopped = True

    def run(
        self, *, until: float = math.inf, idle: Callable[[], bool] | None = None
    ) -> None:
        """Run until nothing is left to do, or that moment, or `stop`.

        Remaining timers are dropped when no request is under way and `idle`
        returns True.
        """
        self._stopped = False
        if until < math.inf:
            self.at(until, self.stop)
        poll, next_sweep = self._epoll.poll, 0.0
        while not self._stopped and (self.unanswered or self._timers):
            if not self.unanswered and idle is not None and idle():
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
        self._epoll.close()

    def drop_free_connections(self) -> None:
        for connection in list(self._free):
            self._forget(connection)

    # Called by connections

    def watch(self, connection: Connection, event: int) -> None:
        self._epoll.modify(connection.number, event)

    def answer(self, connection: Connection, exchange: Exchange, reply: Reply) -> None:
        connection.current = None
        exchange.answered = clock()
        exchange.reply = reply
        self.unanswered -= 1
        if reply.closing:
            self._forget(connection)
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

    # Internals

    def _end_overdue_exchanges(self, now: float) -> None:
        for connection in list(self._connections.values()):
            exchange = connection.current
            if exchange is not None and now - exchange.sent > self.timeout:
                self.lose(connection, "timeout")
        while self._waiting and now - self._waiting[0].scheduled > self.timeout:
            self._fail(self._waiting.popleft(), "timeout")

    def _open(self, exchange: Exchange) -> None:
        connection = (TlsConnection if self.target.tls else Connection)(self)
        if connection.is_refused:
            connection.close()
            exchange.sent = clock()
            # Not at once: a caller that retries would recurse for ever.
            self.later(0.001, lambda: self._fail(exchange, "refused"))
            return
        self._connections[connection.number] = connection
        event = select.EPOLLIN if connection.is_open else select.EPOLLOUT
        self._epoll.register(connection.number, event)
        connection.send(exchange)

    def _forget(self, connection: Connection, *, reset: bool = False) -> None:
        """Close a connection, and open another for a request that waits."""
        del self._connections[connection.number]
        if connection in self._free:
            self._free.remove(connection)
        connection.current = None
        # Closing takes it out of epoll too.
        connection.close(reset=reset)
        if self._waiting:
            self._open(self._waiting.popleft())

    def _fail(self, exchange: Exchange, failure: str) -> None:
        exchange.answered = clock()
        exchange.failure = failure
        self.unanswered -= 1
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


# Yields requests, to whose exchanges it goes on, and pauses in seconds.
Scenario = Generator[bytes | float, Any, Any]


def play(engine: Engine, scenario: Scenario) -> None:
    """Send what a scenario yields, one request after another, until it ends."""

    def proceed(exchange: Exchange | None = None) -> None:
        with contextlib.suppress(StopIteration):
            step = scenario.send(exchange)
            if isinstance(step, bytes):
                engine.ask(step, proceed)
            else:
                engine.later(step, proceed)

    proceed()
