from __future__ import annotations

import pytest

from provisioning.measure.benchmarks import meter as module
from provisioning.measure.benchmarks.meter import Counters, Meter


class FakeStack:
    folder = None

    def sql(self, statements, *, failing):
        return [["10", "4"], ["7", "3", "9000"]]


class FakeSupervisor:
    """A supervisor of a stack whose Memcached does not run."""

    def __init__(self, folder):
        pass

    def pids(self, name):
        return {"nginx": [1], "redis": [2], "beat": [3]}.get(name, [])

    def close(self):
        pass


@pytest.fixture
def meter(monkeypatch):
    """A meter of a machine that used 10 s: nginx 1 s, and Redis was restarted."""
    groups = iter([{"nginx": 1.0, "Redis": 9.0}, {"nginx": 2.0, "Redis": 2.0}])
    machine = iter([100.0, 110.0])
    fake = module.processes
    monkeypatch.setattr(module, "Supervisor", FakeSupervisor)
    monkeypatch.setattr(fake, "cpu_seconds_by_group", lambda _: next(groups))
    monkeypatch.setattr(fake, "machine_cpu_seconds", lambda: next(machine))
    meter = Meter(FakeStack())
    meter.begin()
    meter.end()
    return meter


def test_a_server_is_its_running_programs(meter):
    assert meter.groups == {"nginx": [1], "Redis": [2]}


def test_a_restarted_server_counts_from_nothing(meter):
    assert meter.used == {"nginx": 1.0, "Redis": 0.0}


def test_the_rest_of_the_machine_is_neither_server_nor_engine(meter):
    assert meter.per_request(1000, engine_seconds=4.0) == {
        "nginx": 1000.0,
        "Redis": 0.0,
        "load engine": 4000.0,
        "rest of the machine": 5000.0,
    }


def test_a_run_without_requests_has_figures_too(meter):
    assert meter.per_request(0, engine_seconds=0.0)["nginx"] == 1e6


def test_counters_are_subtracted():
    now = Counters.now(FakeStack())
    assert now.since(Counters(1, 1, 2, 1, 1000)) == (9, 3, 5, 2, 8000)
