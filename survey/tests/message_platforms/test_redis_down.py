"""While Redis is down, hung or slow: 503 at once, and nothing else waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Barrier, Semaphore, Thread

import pytest
from django.core.cache import caches
from django.db import connection, connections

from settings.infrastructure import cache_backends
from settings.infrastructure.circuit_breaker import CircuitBreaker
from settings.tests.helpers import TROUBLES, Helper, running
from settings.tests.patience import patience
from survey.fieldwork.message_platforms import fallback
from survey.fieldwork.message_platforms.directory import forget_directory, write_windows
from survey.fieldwork.message_platforms.hooks import send_finished
from survey.fieldwork.message_platforms.store import message_store
from survey.tests.conftest import FIRST_PAGE, Browser
from survey.tests.message_platforms.cast import (
    answer_and_finish,
    needs_servers,
    platform_of,
    write_hashes,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, needs_servers]


@pytest.fixture
def redis(settings, monkeypatch) -> Iterator[Helper]:
    """A Redis of this test's own, behind a breaker that never tries again."""
    with running("redis") as redis:
        address = f"unix://{redis.address}?socket_timeout=0.1"
        settings.CACHES = {
            **settings.CACHES,
            "messages": {**settings.CACHES["messages"], "LOCATION": address},
        }
        monkeypatch.setitem(
            cache_backends._breakers, address, CircuitBreaker(seconds=3600)
        )
        forget_directory()
        yield redis


@pytest.mark.parametrize("trouble", TROUBLES)
def test_platforms_are_told_to_come_again_at_once(redis, lincoln, dana, maya, trouble):
    braze = platform_of(lincoln.district, dana)
    write_windows(message_store())
    write_hashes(maya)
    assert braze.ask(maya).status_code == 200
    redis.suffer(trouble)
    for _ in range(2):
        assert braze.ask(maya).status_code == 503
    began = time.monotonic()
    for _ in range(20):
        reply = braze.ask(maya)
        assert reply.status_code == 503
        assert 1 <= int(reply["Retry-After"]) <= 5
    assert time.monotonic() - began < patience(1)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_people_save_and_finish_as_before_and_are_noted_later(
    redis, lincoln, dana, maya, trouble, monkeypatch
):
    braze = platform_of(lincoln.district, dana)
    write_windows(message_store())
    write_hashes(maya)
    browser = Browser().log_in(maya)
    redis.suffer(trouble)
    began = time.monotonic()
    browser.save(1, FIRST_PAGE, browser.bootstrap()["revision"] + 1)
    answer_and_finish(browser)
    assert time.monotonic() - began < patience(5)
    redis.recover()
    address = caches.settings["messages"]["LOCATION"]
    monkeypatch.setitem(cache_backends._breakers, address, CircuitBreaker())
    del caches["messages"]
    if trouble == "down":
        # Redis is empty; the rebuild comes first.
        write_windows(message_store())
    send_finished()
    forget_directory()
    assert braze.ask(maya).json()["send"] is False


def test_many_who_miss_the_same_person_read_it_once(braze, maya, monkeypatch):
    reads, ours, wait = [], fallback._read, fallback._wait_for_other
    waiting = Semaphore(0)

    def slowly(alias, respondent_id):
        reads.append(respondent_id)
        # Who looked before and asks afterwards reads once more.
        for _ in range(7):
            assert waiting.acquire(timeout=patience(10))
        return ours(alias, respondent_id)

    def waits(*person):
        waiting.release()
        return wait(*person)

    monkeypatch.setattr(fallback, "_read", slowly)
    monkeypatch.setattr(fallback, "_wait_for_other", waits)
    monkeypatch.setattr(fallback, "READ_SECONDS", 60)
    monkeypatch.setattr(fallback, "WAITS", (0.05,) * 400)
    braze.ask("/messages/0/x.json")
    replies = together(8, lambda: braze_again(braze).ask(maya).status_code)
    assert replies == [200] * 8
    assert len(reads) == 1


def test_few_people_are_read_from_the_database_at_a_time(
    braze, maya, administration, lincoln, monkeypatch
):
    from survey.tests.conftest import enrol
    from survey.tests.message_platforms.cast import identify

    people = [identify(enrol(administration, lincoln, grade=f"{n}")) for n in range(12)]
    running_now, most, ours = [], [], fallback._read

    def slowly(alias, respondent_id):
        running_now.append(respondent_id)
        most.append(len(running_now))
        time.sleep(0.2)
        running_now.remove(respondent_id)
        return ours(alias, respondent_id)

    monkeypatch.setattr(fallback, "_read", slowly)
    waiting = iter(people)
    replies = together(12, lambda: braze_again(braze).ask(next(waiting)).status_code)
    assert max(most) <= fallback.MOST_READS
    assert set(replies) == {200, 503}
    assert replies.count(200) >= fallback.MOST_READS


def braze_again(braze):
    from survey.tests.message_platforms.cast import PlatformClient

    return PlatformClient(braze.platform, braze.api_key)


def together(count: int, act):
    """Call a function in so many threads at once, and return what it returned."""
    barrier, results = Barrier(count), []

    def run() -> None:
        try:
            barrier.wait()
            results.append(act())
        finally:
            connections.close_all()

    threads = [Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert connection is not None
    return results
