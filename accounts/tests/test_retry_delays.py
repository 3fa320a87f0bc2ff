from __future__ import annotations

from datetime import timedelta

import pytest

from accounts.retry_delays import RetryDelays

SECOND = timedelta(seconds=1)
AT_ONCE = RetryDelays(first=timedelta(0), attempts=3)


def test_delays_grow_up_to_the_longest_until_the_last_attempt():
    delays = RetryDelays(first=SECOND, attempts=5, longest=5 * SECOND, jitter=0)
    assert list(delays) == [1, 2, 4, 5]
    assert delays.after(4) == 5 * SECOND
    assert delays.after(5) is delays.after(6) is None


def test_jitter_only_makes_a_delay_longer():
    delays = RetryDelays(first=SECOND, attempts=2, jitter=0.5)
    drawn = {delays.after(1) for _ in range(50)}
    assert len(drawn) > 1
    assert SECOND <= min(drawn) <= max(drawn) <= 1.5 * SECOND


def test_a_call_is_repeated_while_its_error_may_pass():
    errors = [OSError(), OSError()]

    def act() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert AT_ONCE.call(act, may_retry=lambda error: True) == "done"


@pytest.mark.parametrize(("may_retry", "calls"), [(True, 3), (False, 1)])
def test_the_last_error_is_raised(may_retry, calls):
    made = []

    def act() -> None:
        made.append(1)
        raise OSError

    with pytest.raises(OSError):
        AT_ONCE.call(act, may_retry=lambda error: may_retry)
    assert len(made) == calls
