"""What a long run says of memory, and of the start of a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from provisioning.benchmarks.phases import Size
from provisioning.benchmarks.soak import (
    Memory,
    Reading,
    people_for,
    seconds_between,
    start_shortcomings,
)
from provisioning.installation.supervisor import workers_of
from provisioning.load.driver import Driver
from provisioning.processes import (
    children_of,
    memory_mb,
    memory_mb_with_descendants,
    stat_of,
)

pytestmark = pytest.mark.once


def memory_of(*readings: dict[int, float]) -> Memory:
    return Memory([Reading(100 * n, one) for n, one in enumerate(readings)])


def test_flat_memory_is_no_shortcoming():
    memory = memory_of({1: 20, 2: 21}, {1: 39, 2: 40}, {1: 40, 2: 40}, {1: 39, 2: 41})
    assert (memory.most, memory.growth, memory.compared) == (41, 1, 2)
    assert (memory.restarted, memory.shortcomings()) == (0, [])


def test_what_a_worker_takes_up_in_the_first_tenth_is_no_growth():
    assert memory_of({1: 20}, {1: 40}, {1: 45}).shortcomings() == []
    # The twin: the same afterwards is.
    [said] = memory_of({1: 20}, {1: 20}, {1: 40}).shortcomings()
    assert said == "a worker grew by 20.0 MB, above 5"


def test_growth_that_was_given_back_was_growth():
    assert memory_of({1: 20}, {1: 30}, {1: 37}, {1: 30}).growth == 7


def test_one_worker_too_large_is_enough():
    [said] = memory_of({1: 90, 2: 90.1}, {1: 90, 2: 90.1}, {1: 90}).shortcomings()
    assert said == "a worker has 90.1 MB, above 90"


def test_a_worker_that_came_later_is_compared_with_itself():
    """Beside those before it, it would seem to have shrunk, or grown."""
    memory = memory_of({1: 40}, {1: 41}, {2: 20}, {2: 40}, {2: 47})
    assert (memory.restarted, memory.compared, memory.growth) == (1, 1, 7)


def test_workers_that_never_lived_long_prove_nothing():
    memory = memory_of({1: 20}, {2: 20}, {3: 80}, {4: 20})
    assert memory.restarted == 3
    assert memory.shortcomings() == [
        "no worker lived for two tenths: ask for fewer requests"
    ]


def test_nobody_is_missing_at_the_end_of_a_million():
    size = Size(pages=45, room=500)
    # Half of the requests are saves, and each person has 45 of them.
    assert people_for(size, 1_000_000) >= 500_000 / 45 + 2 * 500
    assert people_for(size, 20_000) < 1_500


def test_a_slow_start_is_a_shortcoming():
    assert start_shortcomings(2.0) == []
    assert start_shortcomings(2.5) == ["a worker took 2.50 s to start, above 2"]


def test_the_room_stays_for_the_next_part(monkeypatch):
    """Its people go on where they are, and nobody logs in anew."""
    crowd = SimpleNamespace(
        run_closed=lambda **options: "tally",
        unfinished=lambda: ["somebody"],
        out_of_people=False,
    )
    monkeypatch.setattr("provisioning.load.driver.Crowd", lambda *a, **o: crowd)
    driver = Driver.__new__(Driver)
    driver.target, driver.outside, driver.room = None, iter(()), ["everybody"]
    monkeypatch.setattr(
        "provisioning.load.driver.Engine", lambda _: SimpleNamespace(close=int)
    )
    assert driver.mix(together=1, warm=0, seconds=1) == "tally"
    assert driver.room == ["somebody"]


# Processes ----------------------------------------------------------------

# Holds 40 MB, which its child shares.
PARENT = """
import os, sys, time
held = bytearray(os.urandom(40 * 2**20))
if os.fork():
    print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def parent():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        os.killpg(process.pid, signal.SIGKILL)


def test_shared_pages_are_counted_once(parent):
    [child] = children_of(parent)
    assert 20 < memory_mb(child) < 40
    assert 40 < memory_mb_with_descendants(parent) < 70
    # The twin: each of them by itself holds all of it.
    resident = [psutil.Process(one).memory_info().rss for one in (parent, child)]
    assert sum(resident) > 80 * 2**20


def test_workers_are_the_children_of_their_pools_masters(parent):
    [child] = children_of(parent)
    programs = [
        {"group": "taking", "pid": parent},
        {"group": "taking", "pid": 0},
        {"group": "console", "pid": os.getpid()},
    ]
    assert set(workers_of(programs, "taking")) == {child}


def test_a_process_that_has_gone_has_no_memory():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert (memory_mb(gone.pid), children_of(gone.pid)) == (0.0, [])
    assert memory_mb_with_descendants(0) == 0.0


def test_the_start_is_counted_from_the_fork():
    before = time.time()
    with subprocess.Popen(["sleep", "60"]) as process:
        forked = stat_of(process.pid).started
        process.kill()
    assert seconds_between(forked, before + 1.5) == pytest.approx(1.5, abs=0.1)
    assert seconds_between(forked, before - 1) == 0.0
