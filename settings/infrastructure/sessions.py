"""Sessions in Redis, which say so when they cannot be read.

Raises `settings.infrastructure.cache_backends.RedisAway`, a ConnectionError.
"""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends import cache


class SessionStore(cache.SessionStore):
    def load(self) -> dict[str, Any]:
        # Django takes a store that fails for one that has forgotten, and ends
        # the session: everybody's, for one restart of Redis.
        kept = self._cache.get(self.cache_key)  # type: ignore[attr-defined]
        if kept is None:
            self._session_key = None
            return {}
        return kept
