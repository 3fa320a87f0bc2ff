"""Store sessions in Redis, and raise an error if Redis cannot be read.

The error is `settings.infrastructure.cache_backends.RedisUnavailable`, a
ConnectionError.
"""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends import cache


class SessionStore(cache.SessionStore):
    def load(self) -> dict[str, Any]:
        # Django's own store treats an error as a missing session. A restart of
        # Redis would then log everybody out.
        kept = self._cache.get(self.cache_key)  # type: ignore[attr-defined]
        if kept is None:
            self._session_key = None
            return {}
        return kept
