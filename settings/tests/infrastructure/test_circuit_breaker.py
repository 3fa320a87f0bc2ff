from __future__ import annotations

import pytest

from settings.infrastructure.circuit_breaker import Breaker

pytestmark = pytest.mark.once


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def breaker(time):
    return Breaker(failures=2, seconds=5, clock=time)


def fail(breaker, times):
    for _ in range(times):
        assert breaker.allows()
        breaker.failed()


def test_a_helper_that_fails_twice_is_left_alone_for_a_while(breaker, time):
    fail(breaker, 2)
    assert breaker.is_open
    assert not breaker.allows()
    time.now += 4.9
    assert not breaker.allows()


def test_then_one_tries_and_the_others_wait_for_what_it_finds(breaker, time):
    fail(breaker, 2)
    time.now += 5
    assert [breaker.allows() for _ in range(3)] == [True, False, False]
    breaker.succeeded()
    assert not breaker.is_open
    assert breaker.allows()


def test_a_try_that_fails_leaves_it_open(breaker, time):
    fail(breaker, 2)
    time.now += 5
    fail(breaker, 1)
    assert not breaker.allows()


def test_a_try_that_never_ended_does_not_keep_it_open_for_ever(breaker, time):
    fail(breaker, 2)
    time.now += 5
    assert breaker.allows()
    time.now += 5
    assert breaker.allows()


def test_a_single_failure_is_forgiven(breaker):
    for _ in range(10):
        fail(breaker, 1)
        breaker.succeeded()
    assert breaker.allows()
