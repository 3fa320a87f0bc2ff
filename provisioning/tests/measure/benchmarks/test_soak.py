"""Judge the memory of workers, and their start, from readings."""

from __future__ import annotations

import subprocess
import time
from types import SimpleNamespace

import pytest

from provisioning.measure.benchmarks.soak import judge_memory, seconds_between
from provisioning.measure.load.driver import Driver
from provisioning.processes import (
    stat_of,
)


def test_constant_memory_is_no_shortcoming():
    memory = judge_memory(
        [{1: 20, 2: 21}, {1: 39, 2: 40}, {1: 40, 2: 40}, {1: 39, 2: 41}]
    )
    assert (memory["most_mb"], memory["growth_mb"], memory["compared"]) == (41, 1, 2)
    assert (memory["restarted"], memory["shortcomings"]) == (0, [])


def test_memory_of_the_first_tenth_is_no_growth():
    assert judge_memory([{1: 20}, {1: 40}, {1: 45}])["shortcomings"] == []
    # The twin: afterwards the same is growth.
    [shortcoming] = judge_memory([{1: 20}, {1: 20}, {1: 40}])["shortcomings"]
    assert shortcoming == "a worker grew by 20.0 MB, above 5"


def test_temporary_growth_counts():
    assert judge_memory([{1: 20}, {1: 30}, {1: 37}, {1: 30}])["growth_mb"] == 7


def test_a_single_large_worker_is_a_shortcoming():
    memory = judge_memory([{1: 90, 2: 90.1}, {1: 90, 2: 90.1}, {1: 90}])
    assert memory["shortcomings"] == ["a worker has 90.1 MB, above 90"]


def test_a_later_worker_is_compared_with_itself():
    # Compared with its predecessor it would seem to have shrunk, or grown.
    memory = judge_memory([{1: 40}, {1: 41}, {2: 20}, {2: 40}, {2: 47}])
    assert (memory["restarted"], memory["compared"], memory["growth_mb"]) == (1, 1, 7)


def test_workers_need_three_readings():
    memory = judge_memory([{1: 20}, {2: 20}, {3: 80}, {4: 20}])
    assert memory["restarted"] == 3
    assert memory["shortcomings"] == [
        "no worker lived for two tenths: ask for fewer requests"
    ]


def test_people_stay_for_the_next_part(monkeypatch):
    # They continue where they are, without another login.
    crowd = SimpleNamespace(tally="tally", idle=["somebody"], out_of_people=False)
    monkeypatch.setattr("provisioning.measure.load.driver.send", lambda *a, **o: crowd)
    driver = Driver.__new__(Driver)
    driver.target, driver.seed = None, 0
    driver.outside, driver.room = iter(()), ["everybody"]
    assert driver.mix(together=1, warm=0, seconds=1) == "tally"
    assert driver.room == ["somebody"]


def test_the_start_of_a_worker_counts_from_its_fork():
    before = time.time()
    with subprocess.Popen(["sleep", "60"]) as process:
        forked = stat_of(process.pid).started
        process.kill()
    assert seconds_between(forked, before + 1.5) == pytest.approx(1.5, abs=0.1)
    assert seconds_between(forked, before - 1) == 0.0
