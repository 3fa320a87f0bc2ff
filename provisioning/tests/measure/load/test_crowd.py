"""Closed and open loops: what is sent, counted, and never answered."""

from __future__ import annotations

import random
import threading
import time

import pytest

from provisioning.measure.load.crowd import Crowd
from provisioning.measure.load.engine import schedule_arrivals
from provisioning.measure.load.respondent import save_requests
from provisioning.measure.load.tally import Tally, percentile_of
from provisioning.tests.measure.load.helpers import (
    Send,
    Server,
    engine_for,
    logged_in_respondent,
    receipt,
    reply,
    save_pages,
)


@pytest.fixture(autouse=True)
def long_drain(monkeypatch):
    """A slow machine answers later, but answers. The loop ends with the last reply."""
    monkeypatch.setattr("provisioning.measure.load.crowd.DRAIN", 120.0)


def people(server: Server, count: int = 10_000):
    for n in range(count):
        respondent = logged_in_respondent(server, f"code{n}")
        yield save_requests(respondent, range(1, 11))


def run_open(server: Server, **options: float) -> Tally:
    engine = engine_for(server)
    tally = Crowd(engine, people(server), present=200).run_open(**options)
    engine.close()
    return tally


def arrivals(rate: float, seconds: float, warm: float = 0.0) -> int:
    """Return how many requests the schedule has after the first `warm` seconds."""
    chance, due, count = random.Random(0), 0.0, 0
    while due < warm + seconds:
        count += due >= warm
        due += chance.expovariate(rate)
    return count


def test_every_scheduled_request_is_sent_and_counted(server):
    tally = run_open(server, rate=200, seconds=1, warm=0.2)
    assert tally.answered() == arrivals(rate=200, seconds=1, warm=0.2)
    # With the last ones of the first seconds, if they are answered late.
    assert tally.in_time.total() <= arrivals(rate=200, seconds=1.2)
    managed = tally.per_second() * tally.seconds
    assert managed == pytest.approx(tally.in_time.total())
    assert tally.failed() == 0


def test_arrivals_are_exponential_with_the_given_mean():
    class Timers:
        def __init__(self) -> None:
            self.pending = []

        def at(self, moment, act):
            self.pending.append(act)

    timers, due = Timers(), []
    schedule_arrivals(timers, due.append, rate=50, begin=100.0, seconds=200, seed=3)
    while timers.pending:
        timers.pending.pop()()
    gaps = [later - earlier for earlier, later in zip(due, due[1:], strict=False)]
    assert due[0] == 100.0
    assert due[-1] < 300.0
    assert 9_700 < len(due) < 10_300
    # Of exponential gaps, 1/e are longer than their mean.
    assert sum(gap > 1 / 50 for gap in gaps) / len(gaps) == pytest.approx(0.368, 0.05)


def test_a_stall_delays_every_request_that_is_due_meanwhile(server):
    stalled = threading.Event()
    lock = threading.Lock()

    def stall_once(request: bytes, send: Send) -> None:
        with lock:
            if not stalled.is_set() and len(server.requests) > 50:
                stalled.set()
                time.sleep(0.5)
        send(reply(receipt(request)))

    server.answer = stall_once
    (open_loop,) = run_open(server, rate=200, seconds=1.5).latencies.values()

    assert max(open_loop) > 0.45
    # A hundred were due in that half second.
    assert percentile_of(open_loop, 80) > 0.1

    # A closed loop sees the same stall as one slow request.
    stalled.clear()
    server.requests.clear()
    (closed_loop,) = save_pages(server, pages=300).latencies.values()
    assert max(closed_loop) > 0.45
    assert percentile_of(closed_loop, 50) < percentile_of(open_loop, 80)


def test_too_much_load_shows_what_was_managed(server):
    """Requests of the warm-up are answered first, so that all others are late."""
    lock = threading.Lock()

    def one_at_a_time(request: bytes, send: Send) -> None:
        with lock:
            time.sleep(0.01)
        send(reply(receipt(request)))

    server.answer = one_at_a_time
    tally = run_open(server, rate=300, seconds=0.3, warm=0.3)

    assert tally.answered() == arrivals(rate=300, seconds=0.3, warm=0.3)
    assert tally.failed() == 0
    # The server needs 10 ms for each, however fast the machine is.
    assert tally.in_time.total() <= tally.seconds / 0.01 + 1
    assert tally.in_time.total() < tally.answered()
    # 90 were due in the warm-up, and at most 30 of them were answered then.
    assert tally.percentiles()["p50"] > 200


def test_requests_without_a_reply_are_failures(server, monkeypatch):
    monkeypatch.setattr("provisioning.measure.load.crowd.DRAIN", 0.1)
    server.answer = lambda request, send: threading.Event().wait(60)
    tally = run_open(server, rate=50, seconds=0.3)
    assert tally.answered() == 0
    assert tally.failures_by_name() == {"unanswered": arrivals(rate=50, seconds=0.3)}


def test_a_closed_loop_ends_by_time(server):
    engine, codes = engine_for(server), people(server, 100_000)
    crowd = Crowd(engine, codes)
    began = time.monotonic()
    tally = crowd.run_closed(together=4, seconds=0.3, warm=0.1)
    engine.close()
    assert tally.ended - began >= 0.4
    assert not crowd.out_of_people
    assert next(codes, None) is not None
    assert tally.answered() <= len(server.requests)
    assert server.connections == 4


def test_a_closed_loop_notices_that_respondents_ran_out(server):
    engine = engine_for(server)
    crowd = Crowd(engine, people(server, 2))
    tally = crowd.run_closed(together=4, seconds=60)
    engine.close()
    assert crowd.out_of_people
    assert len(server.requests) == 20
    assert tally.failed() == 0
