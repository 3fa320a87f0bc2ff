"""Measure the memory of workers, and what is killed while it works."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from provisioning.measure.benchmarks import feeds
from provisioning.processes import children_of, peak_mb


class FakeStack:
    """The programs of a stack, and what was done to them."""

    def __init__(self, pids):
        self._pids, self.done = pids, []

    def pids(self, program):
        return self._pids.get(program, [])

    tree = pids

    def kill_together(self, pids):
        self.done.append(("kill", *pids))

    def wait_for(self, program):
        self.done.append(("wait", program))

    def close(self):
        self.done.append(("close",))


@pytest.fixture
def running(monkeypatch):
    running = FakeStack({"download_worker": [1], "scan_worker": [2, 3]})
    monkeypatch.setattr(feeds, "RunningStack", lambda folder: running)
    return running


def stack(is_busy=True):
    answers = [["t" if is_busy else "f"]]
    return SimpleNamespace(folder=None, sql=lambda statement: answers)


def test_the_memory_is_that_of_the_largest_worker_and_not_of_its_master(
    running, parent
):
    # It holds 40 MB, and its child shares them.
    running._pids = {"scan_worker": [parent]}
    assert 40 < feeds.peak_memory(stack()) < peak_mb(parent) + 40
    # A process without children is its own worker.
    [child] = children_of(parent)
    running._pids = {"download_worker": [child]}
    assert feeds.peak_memory(stack()) == peak_mb(child)


def test_both_programs_are_killed_while_they_work(running, capsys):
    assert feeds.kill_workers(stack()) == 2
    assert running.done == [
        ("kill", 1),
        ("wait", "download_worker"),
        ("kill", 2, 3),
        ("wait", "scan_worker"),
        ("close",),
    ]


def test_an_idle_worker_is_not_killed(running, monkeypatch):
    monkeypatch.setattr(feeds, "wait_until", lambda happened, seconds: happened())
    assert feeds.kill_workers(stack(is_busy=False)) == 0
    assert running.done == [("close",)]
