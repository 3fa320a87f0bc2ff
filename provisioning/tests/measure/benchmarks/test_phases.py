from __future__ import annotations

from types import SimpleNamespace

import pytest

from provisioning.commands import Refusal
from provisioning.measure.benchmarks.phases import (
    Size,
    is_held,
    print_step,
    ratio,
    refuse_silence,
    with_enough_people,
)


def test_each_part_has_enough_people():
    size = with_enough_people(Size(pages=10, room=500), parts=5)
    # 12 s each: 5 * 1,700 saves a second, and once 5,000, of ten pages.
    assert size.respondents == max(20_000, 10_200 + 6_000 + 1_000)
    short = with_enough_people(Size(pages=2, room=500), parts=5)
    assert short.respondents == 51_000 + 30_000 + 1_000


def test_a_higher_rate_needs_more_people():
    size = Size(pages=10, room=500, respondents=1)
    slow = with_enough_people(size, parts=1, rate=100)
    assert with_enough_people(size, parts=1, rate=5000).respondents > slow.respondents


RESULT = {"failed": 0, "p99": 250.0, "mix_per_s": 1000.0}


def test_a_rate_is_held_without_failures_and_slow_replies():
    assert is_held(RESULT, rate=1000, seconds=60)
    assert not is_held({**RESULT, "failed": 1}, rate=1000, seconds=60)
    assert not is_held({**RESULT, "p99": 250.1}, rate=1000, seconds=60)


def test_random_arrivals_may_be_a_little_fewer():
    # One percent, and three times the square root of 1000 / 60.
    least = 990 - 3 * (1000 / 60) ** 0.5
    assert is_held({**RESULT, "mix_per_s": least}, rate=1000, seconds=60)
    assert not is_held({**RESULT, "mix_per_s": least - 0.1}, rate=1000, seconds=60)


def test_a_ratio_to_nothing_is_unknown():
    assert ratio(1, 3) == 0.333
    assert ratio(1, 0) is None


def test_a_run_without_answers_is_refused_with_its_failures():
    failures = {"refused": 7}
    tally = SimpleNamespace(answered=lambda: 0, failures_by_name=lambda: failures)
    with pytest.raises(Refusal, match=r"Nothing was answered: \{'refused': 7\}"):
        refuse_silence(tally)


def test_a_step_is_printed_in_one_line(capsys):
    step = {"together": 8, "saves_per_s": 1700.4, "p50": 1.0, "p99": 9.96, "failed": 0}
    print_step(step)
    assert capsys.readouterr().out == (
        "    8 at a time:   1,700 saves/s, p50 1.0 ms, p99 10.0 ms, 0 failed\n"
    )
