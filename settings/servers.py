"""Configure databases and caches, for both the stack and its tests."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any

from settings.infrastructure.cache_backends import SignedJson
from settings.infrastructure.database_connections import TimedConnection

RESPONDENT_SESSION_ENGINE = "settings.infrastructure.sessions"
SESSION_CACHE_ALIAS = "sessions"
LISTS_CACHE_ALIAS = "lists"
MESSAGES_ALIAS = "messages"


def postgresql(
    *, host: str, port: int, name: str, user: str, password: str, ca: str = ""
) -> dict[str, object]:
    """Return DATABASES options for PostgreSQL behind pgbouncer's transaction pool.

    `ca` is the file of the authority by which the server is verified. On a unix socket
    nothing is.
    """
    verified = {"sslmode": "verify-full", "sslrootcert": ca} if ca else {}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": host,
        "PORT": port,
        "NAME": name,
        "USER": user,
        "PASSWORD": password,
        "CONN_MAX_AGE": None,
        # pgbouncer gives the connection to another client after a transaction, so
        # a cursor that outlives it would fail.
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "OPTIONS": {
            "connect_timeout": 2,
            "connection_factory": TimedConnection,
            **verified,
        },
    }


def caches(
    *, memcached: Sequence[str], redis: str, messages_redis: str, ca: str = ""
) -> dict[str, dict[str, Any]]:
    """Return CACHES. `ca` is the file of the authority by which Memcached is verified;
    the addresses of Redis name it themselves.
    """
    encrypted = {"tls_context": ssl.create_default_context(cafile=ca)} if ca else {}
    by_alias: dict[str, dict[str, Any]] = {
        "default": {
            "BACKEND": "settings.infrastructure.cache_backends.KeepAliveMemcached",
            "LOCATION": list(memcached),
            "OPTIONS": encrypted,
        },
        # Of public pages: what the workers write, the respondents' pool reads.
        LISTS_CACHE_ALIAS: {
            "BACKEND": "settings.infrastructure.cache_backends.KeepAliveMemcached",
            "LOCATION": list(memcached),
            "KEY_PREFIX": "lists",
            "OPTIONS": {"serde": SignedJson("LISTS_KEY"), **encrypted},
        },
        SESSION_CACHE_ALIAS: {
            "BACKEND": "settings.infrastructure.cache_backends.KeepAliveRedis",
            "LOCATION": redis,
            "KEY_PREFIX": "session",
        },
    }
    # Of its own, so that two million people can't fill the sessions' memory. Without
    # it, each request of a message platform reads the database.
    if messages_redis:
        by_alias[MESSAGES_ALIAS] = {
            "BACKEND": "settings.infrastructure.cache_backends.RedisCommands",
            "LOCATION": messages_redis,
        }
    return by_alias
