"""Connections to PostgreSQL, Redis and Memcached as the stack configures them."""

from __future__ import annotations

import json
import os
import pickle
import socket
from contextlib import closing, nullcontext

import pytest
from django.conf import settings
from django.contrib.sessions.backends.cache import SessionStore
from django.core.cache import cache
from django.core.cache.backends.memcached import PyMemcacheCache
from django.db import connection, connections
from django.db.backends.postgresql.creation import DatabaseCreation
from django.db.utils import OperationalError
from pymemcache.client import base
from redis import Redis

from settings.infrastructure.cache_backends import KeepAliveMemcached

pytestmark = pytest.mark.skipif(
    not settings.SERVERS, reason="needs PostgreSQL, Redis and Memcached"
)


def is_connected(backend: PyMemcacheCache) -> bool:
    (client,) = backend._cache.clients.values()
    return client.sock is not None


@pytest.mark.parametrize(
    ("backend", "is_kept"), [(KeepAliveMemcached, True), (PyMemcacheCache, False)]
)
def test_only_the_projects_backend_keeps_its_connection(backend, is_kept):
    memcached = backend(settings.CACHES["default"]["LOCATION"], {})
    memcached.set("page", {"n": 3}, 60)
    assert memcached.get("page") == {"n": 3}
    memcached.close()
    assert is_connected(memcached) is is_kept


def test_an_unreachable_memcached_behaves_like_an_empty_cache(tmp_path):
    away = KeepAliveMemcached(f"unix:{tmp_path}/nobody.sock", {})
    away.set("page", "3")
    assert away.get("page", "nothing") == "nothing"


def test_cached_values_are_returned():
    cache.set("words", {"ñ": ["a", None]}, 60)
    assert cache.get("words") == {"ñ": ["a", None]}


def test_sessions_are_stored_as_json_in_redis():
    session = SessionStore()
    session["taking"] = {"tag": "maya"}
    session.save()
    assert SessionStore(session.session_key)["taking"] == {"tag": "maya"}

    redis = Redis.from_url(settings.CACHES["sessions"]["LOCATION"])
    (key,) = redis.keys(f"*{session.session_key}")
    stored = redis.get(key)
    assert json.loads(stored) == {"taking": {"tag": "maya"}}
    redis.close()


@pytest.mark.django_db(transaction=True)
def test_a_test_database_is_dropped_despite_pgbouncers_connections():
    with connection._nodb_cursor() as cursor:
        cursor.execute("CREATE DATABASE short_lived")
    visitor = connection.copy()
    visitor.settings_dict["NAME"] = "short_lived"
    with visitor.cursor() as cursor:
        cursor.execute("SELECT 1")
    visitor.close()

    # A plain DROP waits for pgbouncer's connections until the statement timeout.
    with pytest.raises(OperationalError, match="statement timeout|other users"):
        DatabaseCreation(connection)._destroy_test_db("short_lived", 0)
    connection.creation._destroy_test_db("short_lived", 0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_database WHERE datname = 'short_lived'")
        assert cursor.fetchone() is None


@pytest.mark.django_db
def test_pg_stat_statements_counts_statements():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_statements_reset()")
        for _ in range(3):
            cursor.execute("SELECT count(*) FROM survey_response")
        cursor.execute(
            "SELECT calls FROM pg_stat_statements"
            " WHERE query = 'SELECT count(*) FROM survey_response'"
        )
        assert cursor.fetchone() == (3,)


ran: list[str] = []


class Exploit:
    """Calls `ran.append` when it is unpickled."""

    def __reduce__(self):
        return run, ("code",)


def run(code: str) -> None:
    ran.append(code)


@pytest.mark.parametrize(
    ("backend", "runs"), [(KeepAliveMemcached, False), (PyMemcacheCache, True)]
)
def test_only_with_djangos_backend_a_planted_entry_runs_code(backend, runs):
    memcached = backend(settings.CACHES["default"]["LOCATION"], {})
    ran.clear()
    plant("words", pickle.dumps(Exploit()), flags=1)
    assert memcached.get("words") is None
    memcached.close()
    assert bool(ran) is runs


@pytest.mark.parametrize("entry", [b"x" * 100, b"", b'{"role": "state"}'])
def test_entries_without_a_signature_for_their_key_count_as_missing(entry):
    cache.set("words", {"n": 1})
    signed = plant("words", entry)
    assert cache.get("words") is None
    plant("names", signed)
    assert cache.get("names") is None
    plant("words", signed)
    assert cache.get("words") == {"n": 1}


def plant(key: str, entry: bytes, flags: int = 0) -> bytes:
    """Write to Memcached as another program would; return the entry before."""
    client = base.Client(settings.CACHES["default"]["LOCATION"][0])
    name = cache.make_key(key)
    before: bytes = client.get(name)
    client.set(name, entry, flags=flags, noreply=False)
    client.close()
    return before


@pytest.mark.django_db
@pytest.mark.parametrize("checks", [True, False])
def test_a_connection_that_was_lost_between_requests_is_replaced(checks):
    """As after a restart of pgbouncer; the twin is what the console would do."""
    lost = connections.create_connection("default")
    lost.settings_dict = {**lost.settings_dict, "CONN_HEALTH_CHECKS": checks}
    lost.connect()
    with closing(lost):
        with socket.socket(fileno=os.dup(lost.connection.fileno())) as its_socket:
            its_socket.shutdown(socket.SHUT_RDWR)
        # As Django does when a request begins.
        lost.close_if_unusable_or_obsolete()
        with nullcontext() if checks else pytest.raises(OperationalError):
            lost.cursor().execute("SELECT 1")
