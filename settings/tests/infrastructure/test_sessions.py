"""Sessions in a Redis that is well, away, hung, slow or garbled."""

from __future__ import annotations

import os
import time

import pytest
from django.contrib.sessions.backends import cache as of_django
from django.contrib.sessions.backends.base import UpdateError

from provisioning.fault_injection.proxy import Fault
from settings.infrastructure import cache_backends
from settings.infrastructure.cache_backends import KeptRedisCache, RedisAway, breaker_of
from settings.infrastructure.circuit_breaker import Breaker
from settings.infrastructure.sessions import SessionStore
from settings.tests.helpers import TROUBLES, running

pytestmark = pytest.mark.once


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
            "BACKEND": "settings.infrastructure.cache_backends.KeptRedisCache",
            "LOCATION": address,
            "KEY_PREFIX": "session",
        },
    }


def begun(name: str) -> str:
    """The key of a new session of this person's."""
    session = SessionStore()
    session["name"] = name
    session.save()
    return session.session_key


def name_in(key: str) -> str | None:
    return SessionStore(key).get("name")


def test_a_session_is_kept_changed_and_ended(redis):
    key = begun("maya")
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


def test_it_ends_by_itself(redis, settings):
    settings.SESSION_COOKIE_AGE = 1
    key = begun("maya")
    time.sleep(1.2)
    assert name_in(key) is None


@pytest.mark.parametrize("key", ["é" * 40, "\r\nFLUSHALL\r\n", "a b" * 20, "\0" * 32])
def test_no_key_that_a_browser_sends_is_an_error(redis, key):
    kept = begun("maya")
    assert name_in(key) is None
    assert name_in(kept) == "maya"


def test_many_reads_take_one_connection(redis):
    key = begun("maya")
    backend = SessionStore()._cache
    connection = backend._connection
    for _ in range(10):
        assert name_in(key) == "maya"
        backend.close()
    assert backend._connection is connection


def test_a_child_does_not_read_its_parents_replies(redis):
    key = begun("maya")
    child = os.fork()
    if child == 0:
        try:
            fine = all(name_in(key) == "maya" for _ in range(200))
        finally:
            os._exit(0 if fine else 1)
    assert all(name_in(key) == "maya" for _ in range(200))
    assert os.waitpid(child, 0)[1] == 0


# Away


@pytest.mark.parametrize(
    ("trouble", "by"),
    [*((one, "a proxy") for one in TROUBLES), ("down", ""), ("hung", "")],
)
def test_a_redis_that_is_away_says_so_and_soon_costs_nothing(
    redis, settings, trouble, by
):
    if not by:
        use(settings, f"unix://{redis.path}")
    key = begun("maya")
    redis.suffer(trouble)
    began = time.monotonic()
    for _ in range(100):
        with pytest.raises(RedisAway):
            name_in(key)
        with pytest.raises(RedisAway):
            begun("noor")
    assert time.monotonic() - began < 1.5


def test_without_the_breaker_each_would_wait(redis, monkeypatch):
    """The twin."""
    never = Breaker(failures=10**9)
    monkeypatch.setitem(cache_backends._breakers, f"unix://{redis.address}", never)
    key = begun("maya")
    redis.suffer("slow")
    began = time.monotonic()
    for _ in range(8):
        with pytest.raises(RedisAway):
            name_in(key)
    assert time.monotonic() - began > 8 * 0.2


def test_djangos_own_store_would_take_it_for_the_end_of_the_session(redis):
    """The twin of saying so."""
    key = begun("maya")
    redis.suffer("down")
    assert of_django.SessionStore(key).get("name") is None


@pytest.mark.parametrize("trouble", TROUBLES)
def test_it_is_found_again(redis, trouble, monkeypatch):
    address = f"unix://{redis.address}"
    monkeypatch.setitem(cache_backends._breakers, address, Breaker(seconds=0.1))
    begun("maya")
    redis.suffer(trouble)
    for _ in range(3):
        with pytest.raises(RedisAway):
            begun("maya")
    assert breaker_of(address).is_open

    redis.recover()
    time.sleep(0.15)
    assert name_in(begun("maya")) == "maya"
    assert not breaker_of(address).is_open


def test_a_restart_between_two_requests_is_not_noticed(redis):
    begun("maya")
    redis.stop()
    redis.start()
    assert name_in(begun("maya")) == "maya"


def test_a_full_redis_refuses_new_sessions_only(redis):
    key = begun("maya")
    backend = SessionStore()._cache
    backend._ask("CONFIG", "SET", "maxmemory", "1")
    for _ in range(5):
        with pytest.raises(RedisAway):
            begun("noor")
    assert name_in(key) == "maya"


# Whose session it is


def late(redis) -> tuple[str, str, KeptRedisCache]:
    """Maya's and Noor's keys, after Maya's answer was too late to be waited for."""
    maya, noor = begun("maya"), begun("noor")
    redis.proxy.fault = Fault(delay=0.4)
    with pytest.raises(RedisAway):
        name_in(maya)
    redis.proxy.fault = Fault()
    time.sleep(0.3)
    return maya, noor, SessionStore()._cache


def test_an_answer_that_comes_late_is_not_somebody_elses(redis):
    maya, noor, _ = late(redis)
    assert name_in(noor) == "noor"
    assert name_in(maya) == "maya"


def test_over_a_connection_that_was_kept_it_would_be(redis, monkeypatch):
    """The twin."""
    begun("anybody")
    connection = SessionStore()._cache._connection
    with monkeypatch.context() as patch:
        patch.setattr(connection, "disconnect", lambda *args, **kwargs: None)
        _, noor, _ = late(redis)
        assert name_in(noor) == "maya"
    connection.disconnect()


@pytest.mark.parametrize(
    "fault", [Fault(reset=True), Fault(lose=True), Fault(hang=True)], ids=str
)
def test_whatever_happens_to_a_reply_nobody_gets_anothers(redis, fault, monkeypatch):
    address = f"unix://{redis.address}"
    monkeypatch.setitem(cache_backends._breakers, address, Breaker(failures=10**9))
    keys = {name: begun(name) for name in ("maya", "noor", "sam")}
    for n in range(30):
        redis.proxy.fault = fault if n % 5 == 0 else Fault()
        for name, key in keys.items():
            try:
                assert name_in(key) == name
            except RedisAway:
                redis.proxy.fault = Fault()
    assert redis.proxy.happened >= 5


def test_a_garbled_session_is_none(redis):
    key = begun("maya")
    backend = SessionStore()._cache
    backend._ask("SET", backend.make_key(f"{SessionStore.cache_key_prefix}{key}"), "{x")
    assert name_in(key) is None
