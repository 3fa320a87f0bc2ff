"""Store sessions in Redis, and raise an error if Redis cannot be read.

The error is `settings.infrastructure.cache_backends.RedisUnavailable`, a
ConnectionError.
"""

from __future__ import annotations

import threading
from asyncio import _get_running_loop
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends import cache
from django.contrib.sessions.backends.base import VALID_KEY_CHARS
from django.contrib.sessions.serializers import JSONSerializer
from django.core.cache import caches

from settings.infrastructure.random_strings import random_string


class _OfThread(threading.local):
    handlers: object = None
    cache: Any = None


_of_thread = _OfThread()


def session_cache() -> Any:
    """Return the cache of sessions, which Django would look for with each request.

    Where an event loop runs, each task has its own.
    """
    if _get_running_loop() is not None:
        return caches[settings.SESSION_CACHE_ALIAS]
    # Other ones after a change of settings, in tests.
    handlers = caches._connections  # type: ignore[attr-defined]
    if _of_thread.handlers is not handlers:
        _of_thread.cache = caches[settings.SESSION_CACHE_ALIAS]
        _of_thread.handlers = handlers
    return _of_thread.cache


class SessionStore(cache.SessionStore):
    # Of sessions that are encoded, which these are not.
    serializer = JSONSerializer

    def __init__(self, session_key: str | None = None) -> None:
        # Instead of Django's, in a fifth of the instructions.
        self._session_key = session_key
        self.accessed = self.modified = False
        self._cache = session_cache()

    def load(self) -> dict[str, Any]:
        # Django's own store treats an error as a missing session. A restart of
        # Redis would then log everybody out.
        cached = self._cache.get(self.cache_key)  # type: ignore[attr-defined]
        if cached is None:
            self._session_key = None
            return {}
        return cached

    def _get_new_session_key(self) -> str:
        # 165 random bits. `create` adds the session only where the key is free, so
        # Django's question beforehand whether it exists is one command too many.
        return random_string(32, VALID_KEY_CHARS)
