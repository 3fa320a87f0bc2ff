"""The stack's servers as Django sees them: the same for the stack and its tests."""

from __future__ import annotations

from collections.abc import Sequence

SESSION_ENGINE = "settings.infrastructure.sessions"
SESSION_CACHE_ALIAS = "sessions"


def postgresql(
    *, host: str, port: int, name: str, user: str, password: str
) -> dict[str, object]:
    """PostgreSQL behind pgbouncer, whose pool hands out one transaction at a time."""
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": host,
        "PORT": port,
        "NAME": name,
        "USER": user,
        "PASSWORD": password,
        "CONN_MAX_AGE": None,
        # The check would be one more statement on each page turn.
        "CONN_HEALTH_CHECKS": False,
        # A cursor outlives its transaction, and then belongs to somebody else.
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "OPTIONS": {"connect_timeout": 2},
    }


def caches(*, memcached: Sequence[str], redis: str) -> dict[str, dict[str, object]]:
    return {
        "default": {
            "BACKEND": "settings.infrastructure.cache_backends.KeptMemcachedCache",
            "LOCATION": list(memcached),
        },
        SESSION_CACHE_ALIAS: {
            "BACKEND": "settings.infrastructure.cache_backends.KeptRedisCache",
            "LOCATION": redis,
            "KEY_PREFIX": "session",
        },
    }
