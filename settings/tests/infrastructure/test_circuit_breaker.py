from __future__ import annotations

import pytest

from settings.infrastructure.circuit_breaker import CircuitBreaker


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def breaker(time):
    return CircuitBreaker(failures=2, seconds=5, clock=time)


def fail(breaker, times):
    for _ in range(times):
        assert breaker.allows()
        breaker.failed()


def test_two_failures_open_the_breaker(breaker, time):
    fail(breaker, 2)
    assert breaker.is_open
    assert not breaker.allows()
    time.now += 4.9
    assert not breaker.allows()


def test_an_open_breaker_lets_one_call_through_to_test_the_server(breaker, time):
    fail(breaker, 2)
    time.now += 5
    assert [breaker.allows() for _ in range(3)] == [True, False, False]
    breaker.succeeded()
    assert not breaker.is_open
    assert breaker.allows()


def test_a_failed_test_call_keeps_the_breaker_open(breaker, time):
    fail(breaker, 2)
    time.now += 5
    fail(breaker, 1)
    assert not breaker.allows()


def test_another_test_call_is_allowed_if_the_first_never_finishes(breaker, time):
    fail(breaker, 2)
    time.now += 5
    assert breaker.allows()
    time.now += 5
    assert breaker.allows()


def test_single_failures_do_not_open_the_breaker(breaker):
    for _ in range(10):
        fail(breaker, 1)
        breaker.succeeded()
    assert breaker.allows()
