"""Store sessions in Redis, and raise an error if Redis cannot be read.

The error is `settings.infrastructure.cache_backends.RedisUnavailable`, a
ConnectionError.
"""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends import cache
from django.contrib.sessions.backends.base import VALID_KEY_CHARS

from settings.infrastructure.random_strings import random_string


class SessionStore(cache.SessionStore):
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
