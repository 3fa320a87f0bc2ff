"""How this project talks to its helpers."""

from __future__ import annotations

from typing import Any

from django.core.cache.backends.memcached import PyMemcacheCache

OPTIONS: dict[str, Any] = {
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


class KeptMemcachedCache(PyMemcacheCache):
    """Memcached by a connection that outlives the request."""

    def __init__(self, server: str | list[str], params: dict[str, Any]) -> None:
        options = {**OPTIONS, **(params.get("OPTIONS") or {})}
        super().__init__(server, {**params, "OPTIONS": options})

    def close(self, **kwargs: Any) -> None:
        # Django closes its caches after each request; connecting again would
        # cost more than what is asked.
        pass

    def __del__(self) -> None:
        # Each thread has a connection, and takes it along when it ends.
        if "_cache" in self.__dict__:
            self.__dict__["_cache"].disconnect_all()
