"""One run: when faults are missed, and what is measured around them."""

from __future__ import annotations

import json
import time
from collections import Counter
from types import SimpleNamespace

import pytest

from provisioning.fault_injection import load_processes
from provisioning.fault_injection.arguments import FAULT_DESCRIPTIONS
from provisioning.fault_injection.faults import FAULTS, Fault, NotInjected
from provisioning.fault_injection.load_processes import LoadProcesses, Rehearsal
from provisioning.fault_injection.recovery import Baseline, Timeline
from provisioning.fault_injection.run import FaultRun, InjectedFault, TooSlow
from provisioning.tests.fault_injection.test_recovery import attempt, load
from provisioning.tests.fault_injection.test_report import OPTIONS


@pytest.fixture
def run(tmp_path):
    """A run whose load is a timeline, and which never waits."""
    run = FaultRun(SimpleNamespace(stack=None), tmp_path, OPTIONS)
    run.load = SimpleNamespace(timeline=Timeline(), ended=lambda: 0)
    run.outcome.baseline = Baseline(100, 0.01, 0.005)
    run._watch = lambda seconds: None
    return run


def fault(**changes):
    return Fault("x", **{"inject": lambda context: None, **changes})


def run_one(run, injected):
    object.__setattr__(run, "options", OPTIONS.__class__(**{**vars(OPTIONS)}))
    object.__setattr__(run.options, "faults", [injected])
    run._wait_for_recovery = lambda *arguments, **options: 0.5
    run._inject_faults()
    return run.outcome.faults[0]


def test_a_fault_is_injected_and_healed(run, capsys):
    done = []
    injected = fault(
        inject=lambda context: done.append("inject"),
        heal=lambda context: done.append("heal"),
        prepare=lambda context: done.append("prepare"),
        undo=lambda context: done.append("undo"),
    )
    result = run_one(run, injected)
    assert done == ["prepare", "inject", "heal", "undo"]
    assert (result.missed, result.recovered) == ("", 0.5)
    assert "1/1 x" in capsys.readouterr().out


def test_a_fault_that_can_not_be_injected_is_missed_and_undone(run):
    done = []

    def fail(context):
        raise NotInjected("it was not running")

    injected = fault(
        inject=fail,
        heal=lambda context: done.append("heal"),
        undo=lambda context: done.append("undo"),
    )
    assert run_one(run, injected).missed == "it was not running"
    assert done == ["heal", "undo"]


def test_faults_are_missed_when_no_time_is_left(run):
    run.began = time.monotonic() - 61
    assert run_one(run, fault()).missed == "no time was left"


def test_a_stack_that_is_slow_before_any_fault_is_refused(run):
    with pytest.raises(TooSlow, match="0 a second"):
        run._warm_up()
    now = time.time()
    run.load.timeline.add(load(now - 1, now + 1))
    run._warm_up()
    assert run.outcome.baseline.per_second > 0


def test_the_run_waits_for_enough_acknowledged_saves(run):
    watched = []

    def watch(seconds):
        watched.append(seconds)
        run.load.timeline.add(load(len(watched), len(watched) + 0.5))

    run._watch = watch
    run._wait_for_saves()
    # 50 saves each time, and two in a hundred more than the 100 required.
    assert len(watched) == 3


def test_the_run_does_not_wait_for_saves_of_processes_that_ended(run):
    run.load.ended = lambda: 1
    run._wait_for_saves()


def test_only_acknowledged_saves_are_counted(run):
    run.load.timeline.add([attempt(1.0), attempt(2.0, reply="timeout")])
    assert run._count_acked(0, 10) == 1


def test_recovery_is_given_up_after_its_limit(run):
    assert run._wait_for_recovery(time.time(), limit=-1) is None


def test_an_injected_fault_is_described_in_one_line():
    fault = InjectedFault("redis-down", recovered=1.25, helper="redis", ratio=1.1)
    fault.failures = Counter({"cut": 2})
    line = fault.line()
    assert line.startswith("redis-down")
    assert line.endswith("recovered in   1.2 s, 2 cut, median save x 1.10")
    assert InjectedFault("x").line().endswith("recovered in   never, no failure")
    assert "did not happen: gone" in InjectedFault("x", missed="gone").line()


def test_the_log_disk_is_the_only_fault_that_may_be_prevented():
    context = SimpleNamespace(log_disk=None)
    prevented = [fault.name for fault in FAULTS if fault.prevented(context)]
    assert prevented == ["log-disk-full"]


def test_helpers_and_deployments_are_marked():
    helpers = {fault.name: fault.helper for fault in FAULTS if fault.helper}
    assert helpers == {
        f"{name}-down": name for name in ("redis", "memcached", "replica", "rabbitmq")
    }
    unharmed = [fault.name for fault in FAULTS if fault.unharmed]
    assert unharmed == ["workers-restarted", "nginx-reloaded"]
    assert all("no save may fail" in FAULT_DESCRIPTIONS[name] for name in unharmed)


# Load processes


class FakeProcess:
    def __init__(self, returncode=None) -> None:
        self.returncode = returncode
        self.signals: list[int] = []

    def poll(self):
        return self.returncode

    def send_signal(self, number):
        self.signals.append(number)
        self.returncode = 0

    def wait(self, timeout=None):
        return self.returncode

    def kill(self):
        self.returncode = -9


@pytest.fixture
def processes(tmp_path, monkeypatch):
    started = []

    def start(command, **options):
        started.append(command)
        return FakeProcess()

    monkeypatch.setattr(load_processes, "start_process", start)
    people = [(n, f"CODE{n}") for n in range(100)]
    shares = [
        {"url": "http://127.0.0.1:1", "seats": 30, "rate": 37.5},
        {"url": "http://127.0.0.1:1", "seats": 30, "rate": 37.5},
        {"url": "http://127.0.0.1:2", "seats": 20, "rate": 25.0},
    ]
    rehearsal = Rehearsal(1, {"pages": []}, people)
    processes = LoadProcesses(tmp_path, rehearsal, shares, seed=7)
    processes.orders = [json.loads(command[-1].read_text()) for command in started]
    return processes


def test_respondents_are_divided_by_the_share_of_the_load(processes):
    numbers = [[number for number, _ in each["people"]] for each in processes.orders]
    assert [len(each) for each in numbers] == [38, 37, 25]
    assert sum(numbers, []) == list(range(100))


def test_orders_are_readable_by_their_owner_only(processes, tmp_path):
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.glob("orders-*.json")}
    assert modes == {0o600}


def test_a_drain_needs_complete_logs(processes):
    assert processes.ended() == 0
    assert not processes.drain()
    assert processes.ended() == 3
    for log in processes.logs:
        log.path.write_text("# complete\n")
    assert processes.drain()


def test_a_process_that_failed_spoils_the_drain(processes):
    for log in processes.logs:
        log.path.write_text("# complete\n")
    processes.processes[1].send_signal = lambda number: None
    processes.processes[1].returncode = 1
    assert not processes.drain()


def test_only_running_processes_are_killed(processes):
    processes.processes[0].returncode = 0
    processes.kill()
    assert [each.returncode for each in processes.processes] == [0, -9, -9]
