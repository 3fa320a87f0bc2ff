"""A browser that wrote reads the primary for some seconds."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from balancer import pinning as state
from celery import Celery
from celery.signals import task_prerun
from django.conf import settings
from django.db import router
from django.http import HttpResponse
from django.test import RequestFactory, override_settings

from survey.database.pinning import COOKIE, SECONDS, PinningMiddleware
from survey.database.replica import health
from survey.models import Wave


@pytest.fixture(autouse=True)
def replica(monkeypatch):
    monkeypatch.setitem(settings.DATABASES, "replica", {})
    with override_settings(
        DATABASE_ROUTERS=["survey.database.routers.ForcedReadRouter"],
        MASTER_DATABASE="default",
        DATABASE_POOL={"replica": 1},
    ):
        yield


def ask(view, **cookies: str) -> HttpResponse:
    request = RequestFactory().get("/")
    request.COOKIES.update(cookies)
    return PinningMiddleware(view)(request)


def reading(request) -> HttpResponse:
    return HttpResponse(router.db_for_read(Wave))


def writing(request) -> HttpResponse:
    return HttpResponse(router.db_for_write(Wave))


def test_a_browser_that_wrote_reads_the_primary_for_some_seconds():
    assert ask(reading).content == b"replica"
    wrote = ask(writing)
    assert wrote.cookies[COOKIE]["max-age"] == SECONDS
    assert ask(reading, **{COOKIE: wrote.cookies[COOKIE].value}).content == b"default"
    assert ask(reading).content == b"replica"


def test_a_request_reads_its_own_writes():
    def view(request):
        before = router.db_for_read(Wave)
        router.db_for_write(Wave)
        return HttpResponse(f"{before} {router.db_for_read(Wave)}")

    assert ask(view).content == b"replica default"


def test_reading_sets_no_cookie():
    assert not ask(reading).cookies
    assert not ask(reading, **{COOKIE: "1"}).cookies


@pytest.mark.parametrize("secure", [True, False])
def test_the_cookie_is_http_only_and_same_site(secure):
    with override_settings(SESSION_COOKIE_SECURE=secure):
        cookie = ask(writing).cookies[COOKIE]
    assert cookie["httponly"] is True
    assert cookie["samesite"] == "Lax"
    assert bool(cookie["secure"]) is secure


def test_a_request_that_failed_after_writing_does_not_pin_the_next():
    def failing(request):
        router.db_for_write(Wave)
        raise LookupError

    with pytest.raises(LookupError):
        ask(failing)
    assert ask(reading).content == b"replica"
    assert health.fallback_timeout() is None


def test_writes_outside_of_requests_do_not_pin_a_thread():
    router.db_for_write(Wave)
    assert ask(reading).content == b"replica"


def test_async_requests_in_one_thread_do_not_share_their_pinning():
    wrote = asyncio.Event()

    async def write():
        state.pin_thread()
        wrote.set()
        return state.thread_is_pinned()

    async def read():
        await wrote.wait()
        return state.thread_is_pinned()

    async def both():
        return await asyncio.gather(write(), read())

    # In a thread, because another test's browser runs an event loop in this one.
    with ThreadPoolExecutor() as thread:
        assert thread.submit(lambda: asyncio.run(both())).result() == [True, False]


def test_with_thread_locals_async_requests_would_share_it(monkeypatch):
    monkeypatch.setattr(state, "_locals", threading.local())
    with pytest.raises(AssertionError):
        test_async_requests_in_one_thread_do_not_share_their_pinning()


def test_a_worker_forgets_the_writes_of_its_last_task():
    router.db_for_write(Wave)
    assert state.thread_is_pinned()
    task_prerun.send(sender=None)
    assert not state.thread_is_pinned()
    assert not state.db_was_written()


def test_a_task_inside_of_a_request_keeps_its_writes():
    app = Celery("tests", set_as_current=False)
    app.conf.task_always_eager = True

    @app.task
    def nothing() -> None:
        pass

    def view(request):
        router.db_for_write(Wave)
        nothing.delay()
        return reading(request)

    answer = ask(view)
    assert answer.content == b"default"
    assert COOKIE in answer.cookies
