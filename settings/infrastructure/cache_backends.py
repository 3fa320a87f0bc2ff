"""Provide cache backends that keep their connections open between requests."""

from __future__ import annotations

import hmac
import json
import os
import socket
import ssl
import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, cast

import hiredis
from django.conf import settings
from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.core.cache.backends.memcached import PyMemcacheCache
from redis.backoff import NoBackoff
from redis.connection import ConnectionInterface, ConnectionPool
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import InvalidResponse, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeout
from redis.retry import Retry

from settings.infrastructure.circuit_breaker import CircuitBreaker
from settings.monitoring import stores

OPTIONS: dict[str, object] = {
    # Treat a server that is down as an empty cache.
    "ignore_exc": True,
    "no_delay": True,
    "connect_timeout": 0.1,
    "timeout": 0.25,
    # With the library's defaults a restarted server is used again after 116
    # seconds; with these values after six.
    "retry_attempts": 1,
    "retry_timeout": 1,
    "dead_timeout": 5,
}


Parameters = dict[str, Any]


class SignedJson:
    """Serialize values as JSON with a signature, for pymemcache.

    Django's own backend stores pickles: a process that can write to Memcached
    could run code in each process that reads. An entry without a valid
    signature for its key counts as missing.
    """

    def __init__(self, setting: str = "SECRET_KEY") -> None:
        """Sign with the key in this setting."""
        self.setting = setting

    def serialize(self, key: str | bytes, value: object) -> tuple[bytes, int]:
        body = json.dumps(value).encode()
        return self._signature(key, body) + body, 0

    def deserialize(self, key: str | bytes, entry: bytes, flags: int) -> object:
        signature, body = entry[: sha256().digest_size], entry[sha256().digest_size :]
        if not hmac.compare_digest(signature, self._signature(key, body)):
            return None
        return json.loads(body)

    def _signature(self, key: str | bytes, body: bytes) -> bytes:
        secret = f"settings.cache:{getattr(settings, self.setting)}".encode()
        name = key.encode() if isinstance(key, str) else key
        return hmac.digest(secret, name + b"\0" + body, "sha256")


class KeepAliveMemcached(PyMemcacheCache):
    """Memcached backend whose connection outlives the request. Stores JSON."""

    def __init__(self, server: str | list[str], params: Parameters) -> None:
        options = {**OPTIONS, "serde": SignedJson(), **(params.get("OPTIONS") or {})}
        super().__init__(server, {**params, "OPTIONS": options})

    def get(self, *key: Any, **options: Any) -> Any:
        with stores.timed(stores.MEMCACHED):
            return super().get(*key, **options)

    def set(self, *entry: Any, **options: Any) -> Any:
        with stores.timed(stores.MEMCACHED):
            return super().set(*entry, **options)

    def add(self, *entry: Any, **options: Any) -> Any:
        with stores.timed(stores.MEMCACHED):
            return super().add(*entry, **options)

    def get_many(self, *keys: Any, **options: Any) -> Any:
        with stores.timed(stores.MEMCACHED):
            return super().get_many(*keys, **options)

    def close(self, **kwargs: object) -> None:
        # Django closes its caches after each request; reconnecting would cost
        # more than the reads.
        pass

    def __del__(self) -> None:
        # Each thread has its own connection, which ends with the thread.
        if "_cache" in self.__dict__:
            self.__dict__["_cache"].disconnect_all()


class RedisUnavailable(ConnectionError):
    """Redis is down, hung or slow, or the circuit breaker is open."""


CHUNK = 65_536

# How many forks this process comes from: a look at it costs no system call.
_forks = 0


def _count_fork() -> None:
    global _forks  # noqa: PLW0603
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)

# Circuit breakers by server address, shared by the threads of a process.
_breakers: dict[str, CircuitBreaker] = {}


def breaker_for(server: str) -> CircuitBreaker:
    return _breakers.setdefault(server, CircuitBreaker())


class KeepAliveRedis(BaseCache):
    """Redis backend that stores JSON and whose connection outlives the request.

    Django creates an instance for each thread. One connection for each instance
    takes a third of the time of a client with a pool. Raises RedisUnavailable: first
    after a quarter of a second, then immediately while the breaker is open.
    """

    def __init__(self, server: str, params: Parameters) -> None:
        super().__init__(params)
        self._pool = ConnectionPool.from_url(
            server,
            # A normal reply takes a millisecond. Saving a page must not wait for
            # a server that takes longer than this.
            socket_connect_timeout=0.1,
            socket_timeout=0.25,
            # The library's default retries would take more than a second.
            retry=Retry(NoBackoff(), 0),
            # Avoids the handshake before the first command.
            protocol=2,
            driver_info=None,
        )
        self._breaker = breaker_for(server)
        self._connection: ConnectionInterface | None = None
        self._wire: socket.socket | None = None
        self._forks = _forks

    def get(
        self, key: str, default: object = None, version: int | None = None
    ) -> object:
        text = self._ask("GET", self.make_key(key, version))
        if not isinstance(text, str | bytes):
            return default
        try:
            return json.loads(text)
        except ValueError:
            return default

    def add(
        self,
        key: str,
        value: object,
        timeout: float | object | None = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> bool:
        return self._set(key, value, timeout, version, "NX")

    def set(
        self,
        key: str,
        value: object,
        timeout: float | object | None = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> None:
        self._set(key, value, timeout, version)

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        """Add to a number that exists. A missing one would start at 0, for ever."""
        return cast(int, self._ask("INCRBY", self.make_key(key, version), delta))

    def delete(self, key: str, version: int | None = None) -> bool:
        return bool(self._ask("DEL", self.make_key(key, version)))

    def has_key(self, key: str, version: int | None = None) -> bool:
        return bool(self._ask("EXISTS", self.make_key(key, version)))

    def clear(self) -> None:
        self._ask("FLUSHDB")

    def _set(
        self, key: str, value: object, timeout: object, version: int | None, *how: str
    ) -> bool:
        if timeout is DEFAULT_TIMEOUT:
            timeout = self.default_timeout
        life = ("EX", max(1, int(timeout))) if isinstance(timeout, int | float) else ()
        name = self.make_key(key, version)
        return self._ask("SET", name, json.dumps(value), *life, *how) is not None

    def _ask(self, *command: Any) -> object:
        # Most page saves are not measured, and a look costs less than `timed`.
        if stores.measured() is None:
            return self._ask_now(*command)
        with stores.timed(stores.REDIS):
            return self._ask_now(*command)

    def _ask_now(self, *command: Any) -> object:
        if not self._breaker.allows():
            raise RedisUnavailable
        connection = self._connection
        is_reused = connection is not None and self._forks == _forks
        try:
            if connection is None or not is_reused:
                # A forked child must not use its parent's connection: it would
                # read its parent's replies.
                connection = self._connection = self._pool.make_connection()
                self._forks = _forks
            try:
                reply = self._exchange(connection, command)
            except ConnectionLost:
                if not is_reused:
                    raise
                # Redis was restarted since the last request.
                reply = self._exchange(connection, command)
        except ResponseError as refused:
            # The server is running, so the breaker stays closed. A Redis that is
            # full refuses only new sessions, for example.
            self._breaker.succeeded()
            raise RedisUnavailable from refused
        except (RedisError, OSError) as error:
            self._breaker.failed()
            raise RedisUnavailable from error
        self._breaker.succeeded()
        return reply

    def _exchange(
        self, connection: ConnectionInterface, command: tuple[Any, ...]
    ) -> object:
        [reply] = self._replies(connection, hiredis.pack_command(command), 1)
        if isinstance(reply, ResponseError):
            raise reply
        return reply

    def _replies(self, connection: Any, commands: bytes, count: int) -> list[object]:
        """Send packed commands, and return so many replies.

        By the connection's socket, past redis-py, whose layers take four times as long
        as this and Redis together. Raises ConnectionLost and RedisTimeout.
        """
        replies: list[object] = []
        try:
            wire = self._wire
            if wire is None or wire is not connection._sock:
                connection.connect()
                wire = self._wire = connection._sock
                wait_in_kernel(wire, connection.socket_timeout)
                self._reader = hiredis.Reader(
                    protocolError=InvalidResponse, replyError=ResponseError
                )
            wire.sendall(commands)
            while len(replies) < count:
                # False is no reply of this protocol.
                reply = self._reader.gets()
                if reply is not False:
                    replies.append(reply)
                elif data := wire.recv(CHUNK):
                    self._reader.feed(data)
                else:
                    raise ConnectionLost
        except BaseException as error:
            # The reply may still arrive. The next command on this connection
            # would read it as its own, and return another person's session.
            self._wire = None
            connection.disconnect()
            # By the kernel, and by Python where there is TLS.
            if isinstance(error, BlockingIOError | TimeoutError):
                raise RedisTimeout from error
            if isinstance(error, OSError):
                raise ConnectionLost from error
            raise
        return replies


def wait_in_kernel(wire: socket.socket, seconds: float) -> None:
    """Let the kernel end a wait with BlockingIOError.

    Python's own limit is a `poll` before each `recv` and `send`. A socket with TLS
    reads in several steps, and keeps it.
    """
    if isinstance(wire, ssl.SSLSocket):
        return
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
    wire.settimeout(None)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


class RedisCommands(KeepAliveRedis):
    """Redis backend for any command, and for many of them in one round trip."""

    def command(self, *command: str | bytes | int) -> Any:
        return self._ask(*command)

    def pipeline(self, commands: Sequence[tuple[str | bytes | int, ...]]) -> list[Any]:
        """Return the replies in order. Raises RedisUnavailable if one is an error."""
        return cast(list[Any], self._ask(*commands))

    def _exchange(
        self, connection: ConnectionInterface, command: tuple[Any, ...]
    ) -> object:
        if not isinstance(command[0], tuple):
            return super()._exchange(connection, command)
        packed = b"".join(map(hiredis.pack_command, command))
        # All of them are read, even after an error.
        replies = self._replies(connection, packed, len(command))
        for reply in replies:
            if isinstance(reply, ResponseError):
                raise reply
        return replies
