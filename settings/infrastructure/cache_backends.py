"""How this project talks to its helpers."""

from __future__ import annotations

import json
import os
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.core.cache.backends.memcached import PyMemcacheCache
from redis.backoff import NoBackoff
from redis.connection import ConnectionInterface, ConnectionPool
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from settings.infrastructure.circuit_breaker import Breaker

OPTIONS: dict[str, object] = {
    # A server that is away is an empty one.
    "ignore_exc": True,
    "no_delay": True,
    "connect_timeout": 0.1,
    "timeout": 0.25,
    # The library's own patience finds a restarted server after 116 seconds;
    # these numbers find it after six.
    "retry_attempts": 1,
    "retry_timeout": 1,
    "dead_timeout": 5,
}


Parameters = dict[str, Any]


class KeptMemcachedCache(PyMemcacheCache):
    """Memcached by a connection that outlives the request."""

    def __init__(self, server: str | list[str], params: Parameters) -> None:
        options = {**OPTIONS, **(params.get("OPTIONS") or {})}
        super().__init__(server, {**params, "OPTIONS": options})

    def close(self, **kwargs: object) -> None:
        # Django closes its caches after each request; connecting again would
        # cost more than what is asked.
        pass

    def __del__(self) -> None:
        # Each thread has a connection, and takes it along when it ends.
        if "_cache" in self.__dict__:
            self.__dict__["_cache"].disconnect_all()


class RedisAway(ConnectionError):
    """Redis is down, hung or slow, or a breaker spares it the question."""


# By address: what one thread finds out, the others need not.
_breakers: dict[str, Breaker] = {}


def breaker_of(server: str) -> Breaker:
    return _breakers.setdefault(server, Breaker())


class KeptRedisCache(BaseCache):
    """JSON in Redis by a connection that outlives the request.

    Django has an instance for each thread, and each its own connection, which
    takes a third of the time of a client with a pool. Raises RedisAway, after
    a quarter of a second at first, and then at once.
    """

    def __init__(self, server: str, params: Parameters) -> None:
        super().__init__(params)
        self._pool = ConnectionPool.from_url(
            server,
            # A reply takes a millisecond. A page that is being saved has better
            # to do than to wait for one that takes this long.
            socket_connect_timeout=0.1,
            socket_timeout=0.25,
            # The library's own would take a second and more.
            retry=Retry(NoBackoff(), 0),
            # Nothing to agree on before the first question.
            protocol=2,
            driver_info=None,
        )
        self._breaker = breaker_of(server)
        self._connection: ConnectionInterface | None = None
        self._process = 0

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

    def _ask(self, *command: str | int) -> object:
        if not self._breaker.allows():
            raise RedisAway
        try:
            reply = self._answer(command)
        except ResponseError as refused:
            # It answers, so the others may go on asking: a full store refuses
            # new sessions only.
            self._breaker.succeeded()
            raise RedisAway from refused
        except (RedisError, OSError) as error:
            self._breaker.failed()
            raise RedisAway from error
        self._breaker.succeeded()
        return reply

    def _answer(self, command: tuple[str | int, ...]) -> object:
        connection = self._connection
        kept = connection is not None and self._process == os.getpid()
        if connection is None or not kept:
            # A child that used its parent's would read its parent's replies.
            connection = self._connection = self._pool.make_connection()
            self._process = os.getpid()
        try:
            return self._exchange(connection, command)
        except ConnectionLost:
            if not kept:
                raise
            # Redis was restarted since the last request.
            return self._exchange(connection, command)

    def _exchange(
        self, connection: ConnectionInterface, command: tuple[str | int, ...]
    ) -> object:
        try:
            connection.send_command(*command)
            return connection.read_response()
        except ResponseError:
            raise
        except BaseException:
            # The reply may still come. Whoever asked next over this connection
            # would take it for an answer: somebody else's session.
            connection.disconnect()
            raise
