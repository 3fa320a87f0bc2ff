"""The matrix: what a person does, while one helper is down, hung or slow.

Each cell is a test. Redis and Memcached are a test's own, and really stopped;
RabbitMQ is a listener that accepts and never answers, and the replica may not
be connected to. With one helper in trouble, two requests wait for it, until
its breaker has opened.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from django.core.cache import caches
from django.core.cache.backends.memcached import PyMemcacheCache
from django.db import InternalError, connections
from django.test.testcases import DatabaseOperationForbidden
from pymemcache.exceptions import MemcacheError

from settings.celery import app as celery
from settings.infrastructure import cache_backends
from settings.infrastructure.cache_backends import breaker_for
from settings.infrastructure.circuit_breaker import CircuitBreaker
from settings.tests.helpers import TROUBLES, Helper, running
from settings.tests.patience import patience
from survey.taking import page_save, resume_cookie, session, unavailable, views
from survey.taking.published import SurveyNotFound, forget_published
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, Browser, code_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
JSON = {"Accept": "application/json"}
PAGES = 10
EXTRA = 1.0


@pytest.fixture
def redis() -> Iterator[Helper]:
    with running("redis") as redis:
        yield redis


@pytest.fixture
def memcached() -> Iterator[Helper]:
    with running("memcached") as memcached:
        yield memcached


@pytest.fixture(autouse=True)
def stack(settings, redis, memcached, monkeypatch):
    """Configure everything but the database like the respondents' pool."""
    settings.MIDDLEWARE = [
        "survey.taking.security_headers.SecurityHeaders",
        "survey.taking.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
    ]
    settings.RESPONDENT_SESSION_ENGINE = "settings.infrastructure.sessions"
    settings.SESSION_CACHE_ALIAS = "sessions"
    settings.CACHES = {
        "default": {
            "BACKEND": "settings.infrastructure.cache_backends.KeepAliveMemcached",
            "LOCATION": [f"unix:{memcached.address}"],
        },
        "sessions": {
            "BACKEND": "settings.infrastructure.cache_backends.KeepAliveRedis",
            "LOCATION": f"unix://{redis.address}",
        },
    }
    # It does not test the server again before the test ends.
    breaker = CircuitBreaker(seconds=3600)
    monkeypatch.setitem(cache_backends._breakers, f"unix://{redis.address}", breaker)
    resume_cookie.forget_digests()
    forget_published()
    yield
    resume_cookie.forget_digests()


def save_pages(browser, respondent, base, *, cold=False) -> float:
    """Save PAGES pages and return the seconds that it took."""
    tag = session.tag_for(respondent.pk)
    began = time.monotonic()
    for n in range(PAGES):
        if cold:
            forget_published()
        reply = browser.save(1, FIRST_PAGE, base + n, tag=tag)
        assert (reply.status_code, reply.json()["revision"]) == (200, base + n)
    return time.monotonic() - began


def requests_that_waited(redis: Helper) -> int:
    return breaker_for(f"unix://{redis.address}")._failed


def finish(browser, respondent, base) -> None:
    tag = session.tag_for(respondent.pk)
    for n, answers in ((2, SECOND_PAGE), (3, {"last": None})):
        assert browser.save(n, answers, base + n, tag=tag).status_code == 200
    review = browser.get("/take/complete/")
    reply = browser.post(
        "/take/complete/", {"reviewed": review.context["reviewed"]}, follow=True
    )
    respondent.refresh_from_db()
    assert respondent.completed_at is not None
    assert reply.context["finished_at"] == respondent.completed_at


def test_everything_works_with_both_helpers_up(browser, maya, redis, memcached):
    """The baseline for the tests below: both servers are used."""
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    save_pages(browser, maya, base, cold=True)
    finish(browser, maya, base + PAGES)
    assert caches["sessions"]._ask("DBSIZE") == 3
    (client,) = caches["default"]._cache.clients.values()
    assert client.stats()[b"curr_items"] >= 1


# The primary


def read_only() -> InternalError:
    error = InternalError("cannot execute INSERT in a read-only transaction")
    error.__cause__ = type("Error", (Exception,), {"pgcode": "25006"})()
    return error


@pytest.fixture
def make_read_only_error(monkeypatch):
    """Make the error of a server that is no longer the primary."""
    closed = []
    # The test's transaction still needs the connection.
    monkeypatch.setattr(connections["default"], "close", lambda: closed.append(1))

    def save(**kwargs):
        raise read_only()

    monkeypatch.setattr(page_save, "save_page", save)
    return closed


def test_a_read_only_server_after_a_failover_gives_503(
    browser, maya, make_read_only_error
):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    before = len(make_read_only_error)
    reply = browser.save(1, FIRST_PAGE, base)
    assert (reply.status_code, reply.json()) == (503, {"error": "database"})
    assert 1 <= int(reply["Retry-After"]) <= 5
    assert len(make_read_only_error) > before


def test_without_its_sqlstate_a_read_only_server_would_be_an_error(
    browser, maya, make_read_only_error, monkeypatch
):
    """Other internal errors are not hidden."""
    monkeypatch.setattr(unavailable, "READ_ONLY", "none")
    browser.log_in(maya)
    with pytest.raises(InternalError, match="read-only transaction"):
        browser.save(1, FIRST_PAGE, browser.bootstrap()["revision"])


def raising(error):
    def fail(*args, **kwargs):
        raise error

    return fail


def test_a_published_survey_that_is_missing_gives_503(browser, maya, monkeypatch):
    """The server that was read lags; the browser keeps the page."""
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    content = browser.bootstrap()["urls"]["content"]
    content = content.replace("{language}", "en").replace("{n}", "1")
    monkeypatch.setattr(views, "published_survey", raising(SurveyNotFound("x")))
    shell = browser.get("/take/", headers=JSON)
    page = browser.save(1, FIRST_PAGE, base)
    for reply in (shell, page):
        assert (reply.status_code, reply.json()) == (503, {"error": "survey"})
    review = browser.get("/take/complete/")
    assert review.status_code == 503
    # Only people without a session wait in line; this page reloads itself.
    assert b"Your answers are safe" in review.content
    assert b"in line" not in review.content
    assert review["Refresh"] == review["Retry-After"]
    assert browser.get(content).status_code == 404


# Redis


@pytest.mark.parametrize("trouble", TROUBLES)
def test_without_redis_pages_resuming_and_finishing_work(browser, maya, redis, trouble):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    save_pages(browser, maya, base)

    redis.suffer(trouble)
    save_pages(browser, maya, base + PAGES)
    assert requests_that_waited(redis) == 2
    assert browser.bootstrap()["answers"]["age"] == "12"
    finish(browser, maya, base + 3 * PAGES)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_without_redis_new_logins_get_503(browser, maya, redis, trouble):
    redis.suffer(trouble)
    for n in range(5):
        reply = Browser().post("/", {"code": code_of(maya)}, headers=JSON)
        assert (reply.status_code, reply.json()) == (503, {"error": "sessions"})
        assert 1 <= int(reply["Retry-After"]) <= 5
        cookies = {name for name in reply.cookies if reply.cookies[name].value}
        assert cookies <= {"csrftoken"}
        assert requests_that_waited(redis) == min(n + 1, 2)


def test_after_redis_was_emptied_everybody_goes_on(browser, maya, noor, redis):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    redis.stop()
    redis.start()
    save_pages(browser, maya, base)
    finish(browser, maya, base + PAGES)
    # New logins work again at once.
    assert browser.log_in(noor).bootstrap()["tag"] == session.tag_for(noor.pk)


# Memcached


@pytest.mark.parametrize("trouble", TROUBLES)
def test_without_memcached_everything_works(browser, maya, memcached, trouble):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    usual = save_pages(browser, maya, base, cold=True)

    memcached.suffer(trouble)
    assert save_pages(browser, maya, base + PAGES, cold=True) < usual + patience(EXTRA)
    forget_published()
    assert browser.log_in(maya).bootstrap()["answers"]["age"] == "12"
    finish(browser, maya, base + 3 * PAGES)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_process_with_the_survey_in_memory_does_not_read_memcached(
    browser, maya, memcached, trouble
):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    memcached.suffer(trouble)
    happened = memcached.proxy.happened
    save_pages(browser, maya, base)
    assert memcached.proxy.happened == happened


def test_with_the_librarys_default_timeout_a_hung_memcached_is_an_error(memcached):
    """Without any timeout the request would hang."""
    impatient = {"OPTIONS": {"timeout": 0.2}}
    backend = PyMemcacheCache(f"unix:{memcached.address}", impatient)
    memcached.suffer("hung")
    with pytest.raises((MemcacheError, OSError)):
        backend.get("page")
    backend.close()


# The replica and RabbitMQ


class Silent:
    """A server that accepts connections and never answers."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.asked = 0
        self._clients: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            self._clients.append(client)
            if client.recv(1, socket.MSG_PEEK) == b"q":
                return
            self.asked += 1

    def close(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            last.sendall(b"q")
            self._thread.join(10)
        for client in [self.listener, *self._clients]:
            client.close()


@pytest.fixture
def silent():
    silent = Silent()
    yield silent
    silent.close()


@pytest.fixture
def route_to_a_replica(settings, monkeypatch):
    """A replica that tests may not connect to: reading it is an error."""

    def route():
        about = {**connections.settings["default"], "ENGINE": "survey.database.replica"}
        monkeypatch.setitem(settings.DATABASES, "replica", about)
        monkeypatch.setitem(connections.settings, "replica", about)
        settings.MASTER_DATABASE = "default"
        settings.DATABASE_POOL = {"replica": 1}
        settings.DATABASE_ROUTERS = ["survey.database.routers.ForcedReadRouter"]

    yield route
    # Created for these settings; another test's replica is another server.
    with suppress(AttributeError):
        del connections["replica"]


def test_a_page_save_does_not_read_the_replica(browser, maya, route_to_a_replica):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    route_to_a_replica()
    save_pages(browser, maya, base)
    finish(browser, maya, base + PAGES)


def test_a_process_without_the_survey_reads_the_replica(
    browser, maya, route_to_a_replica
):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    route_to_a_replica()
    caches["default"].clear()
    with pytest.raises(DatabaseOperationForbidden, match="'replica'"):
        save_pages(browser, maya, base, cold=True)


@pytest.fixture
def broker(silent, monkeypatch):
    monkeypatch.setitem(celery.conf, "broker_url", f"amqp://127.0.0.1:{silent.port}//")
    monkeypatch.setitem(celery.conf, "task_always_eager", False)
    return silent


def test_taking_a_survey_never_connects_to_rabbitmq(browser, maya, broker):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    save_pages(browser, maya, base)
    finish(browser, maya, base + PAGES)
    assert broker.asked == 0


def test_queueing_a_task_would_connect_to_rabbitmq(broker):
    with pytest.raises(OSError), celery.connection_for_write() as line:
        line.connect_timeout = 0.3
        line.connect()
    assert broker.asked >= 1
