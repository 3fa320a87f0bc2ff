"""Sessions while Redis is up, down, hung, slow or returns garbage."""

from __future__ import annotations

import os
import time

import pytest
from django.contrib.sessions.backends import cache as of_django
from django.contrib.sessions.backends.base import UpdateError

from settings.infrastructure import cache_backends
from settings.infrastructure.cache_backends import (
    RedisUnavailable,
    breaker_for,
)
from settings.infrastructure.circuit_breaker import CircuitBreaker
from settings.infrastructure.sessions import SessionStore
from settings.tests.helpers import TROUBLES, running
from settings.tests.proxy import Fault

pytestmark = pytest.mark.slow


@pytest.fixture
def redis(settings):
    with running("redis") as redis:
        use(settings, f"unix://{redis.address}")
        yield redis


def use(settings, address: str) -> None:
    """Keep sessions in the Redis at this address."""
    settings.SESSION_CACHE_ALIAS = "sessions"
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
        "sessions": {
            "BACKEND": "settings.infrastructure.cache_backends.KeepAliveRedis",
            "LOCATION": address,
            "KEY_PREFIX": "session",
        },
    }


def start_session(name: str) -> str:
    """Store a new session with this name in it, and return its key."""
    session = SessionStore()
    session["name"] = name
    session.save()
    return session.session_key


def name_in(key: str) -> str | None:
    return SessionStore(key).get("name")


def test_a_session_is_saved_changed_and_flushed(redis):
    key = start_session("maya")
    assert name_in(key) == "maya"

    session = SessionStore(key)
    session["name"] = "noor"
    session.set_expiry(600)
    session.save()
    assert name_in(key) == "noor"

    session.flush()
    assert name_in(key) is None
    with pytest.raises(UpdateError):
        gone = SessionStore(key)
        gone["name"] = "maya"
        gone._session_key = key
        gone.save()


def test_a_session_expires(redis, settings):
    settings.SESSION_COOKIE_AGE = 1
    key = start_session("maya")
    time.sleep(1.2)
    assert name_in(key) is None


@pytest.mark.parametrize("key", ["é" * 40, "\r\nFLUSHALL\r\n", "a b" * 20, "\0" * 32])
def test_malformed_session_keys_are_not_an_error(redis, key):
    session = start_session("maya")
    assert name_in(key) is None
    assert name_in(session) == "maya"


def test_reads_share_one_connection(redis):
    key = start_session("maya")
    backend = SessionStore()._cache
    connection = backend._connection
    for _ in range(10):
        assert name_in(key) == "maya"
        backend.close()
    assert backend._connection is connection


def test_a_forked_child_does_not_read_its_parents_replies(redis):
    key = start_session("maya")
    child = os.fork()
    if child == 0:
        try:
            fine = all(name_in(key) == "maya" for _ in range(200))
        finally:
            os._exit(0 if fine else 1)
    assert all(name_in(key) == "maya" for _ in range(200))
    assert os.waitpid(child, 0)[1] == 0


# Outages


@pytest.mark.parametrize(
    ("trouble", "by"),
    [*((trouble, "a proxy") for trouble in TROUBLES), ("down", ""), ("hung", "")],
)
def test_an_outage_raises_an_error_and_the_breaker_avoids_waiting(
    redis, settings, trouble, by, monkeypatch
):
    address = redis.address if by else redis.path
    # It does not test the server again before the test ends.
    breaker = CircuitBreaker(seconds=3600)
    monkeypatch.setitem(cache_backends._breakers, f"unix://{address}", breaker)
    use(settings, f"unix://{address}")
    key = start_session("maya")
    redis.suffer(trouble)
    for _ in range(100):
        with pytest.raises(RedisUnavailable):
            name_in(key)
        with pytest.raises(RedisUnavailable):
            start_session("noor")
    # Of 200 requests, two waited for Redis.
    assert breaker._failed == 2


def test_each_request_would_wait_without_the_breaker(redis, monkeypatch):
    never = CircuitBreaker(failures=10**9)
    monkeypatch.setitem(cache_backends._breakers, f"unix://{redis.address}", never)
    key = start_session("maya")
    redis.suffer("slow")
    began = time.monotonic()
    for _ in range(8):
        with pytest.raises(RedisUnavailable):
            name_in(key)
    assert time.monotonic() - began > 8 * 0.2


def test_djangos_own_store_would_treat_an_outage_as_a_missing_session(redis):
    key = start_session("maya")
    redis.suffer("down")
    assert of_django.SessionStore(key).get("name") is None


@pytest.mark.parametrize("trouble", TROUBLES)
def test_redis_is_used_again_after_it_recovers(redis, trouble, monkeypatch):
    address = f"unix://{redis.address}"
    monkeypatch.setitem(cache_backends._breakers, address, CircuitBreaker(seconds=0.1))
    start_session("maya")
    redis.suffer(trouble)
    for _ in range(3):
        with pytest.raises(RedisUnavailable):
            start_session("maya")
    assert breaker_for(address).is_open

    redis.recover()
    time.sleep(0.15)
    assert name_in(start_session("maya")) == "maya"
    assert not breaker_for(address).is_open


def test_a_restart_between_two_requests_loses_no_request(redis):
    start_session("maya")
    redis.stop()
    redis.start()
    assert name_in(start_session("maya")) == "maya"


def test_a_full_redis_refuses_only_new_sessions(redis):
    key = start_session("maya")
    backend = SessionStore()._cache
    backend._ask("CONFIG", "SET", "maxmemory", "1")
    for _ in range(5):
        with pytest.raises(RedisUnavailable):
            start_session("noor")
    assert name_in(key) == "maya"


# Replies that arrive late


def time_out_a_reply(redis) -> tuple[str, str]:
    """Return Maya's and Noor's keys, after the reply to reading Maya's timed out."""
    maya, noor = start_session("maya"), start_session("noor")
    redis.proxy.fault = Fault(delay=0.4)
    with pytest.raises(RedisUnavailable):
        name_in(maya)
    redis.proxy.fault = Fault()
    time.sleep(0.3)
    return maya, noor


def test_a_late_reply_is_not_read_as_another_session(redis):
    maya, noor = time_out_a_reply(redis)
    assert name_in(noor) == "noor"
    assert name_in(maya) == "maya"


def test_without_reconnecting_a_late_reply_would_be_misread(redis, monkeypatch):
    start_session("anybody")
    connection = SessionStore()._cache._connection
    with monkeypatch.context() as patch:
        patch.setattr(connection, "disconnect", lambda *args, **kwargs: None)
        _, noor = time_out_a_reply(redis)
        assert name_in(noor) == "maya"
    connection.disconnect()


@pytest.mark.parametrize(
    "fault", [Fault(reset=True), Fault(lose=True), Fault(hang=True)], ids=str
)
def test_a_lost_reply_never_returns_another_session(redis, fault, monkeypatch):
    address = f"unix://{redis.address}"
    monkeypatch.setitem(
        cache_backends._breakers, address, CircuitBreaker(failures=10**9)
    )
    keys = {name: start_session(name) for name in ("maya", "noor", "sam")}
    for n in range(30):
        redis.proxy.fault = fault if n % 5 == 0 else Fault()
        for name, key in keys.items():
            try:
                assert name_in(key) == name
            except RedisUnavailable:
                redis.proxy.fault = Fault()
    assert redis.proxy.happened >= 5


def test_a_garbled_session_is_empty(redis):
    key = start_session("maya")
    backend = SessionStore()._cache
    backend._ask("SET", backend.make_key(f"{SessionStore.cache_key_prefix}{key}"), "{x")
    assert name_in(key) is None
