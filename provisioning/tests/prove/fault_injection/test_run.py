"""One run: when faults are missed, and what is measured around them."""

from __future__ import annotations

import signal
import time
from collections import Counter
from contextlib import contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace

import pytest

from provisioning.measure.load.target import target_of
from provisioning.prove.fault_injection import load_processes
from provisioning.prove.fault_injection.faults import (
    BY_NAME,
    FAULTS,
    Fault,
    NotInjected,
)
from provisioning.prove.fault_injection.load_processes import (
    LoadProcesses,
    Rehearsal,
)
from provisioning.prove.fault_injection.recovery import Baseline, Timeline
from provisioning.prove.fault_injection.retrying_respondent import LossyEngine
from provisioning.prove.fault_injection.run import FaultRun, TooSlow
from provisioning.prove.fault_injection.stack import RunningStack
from provisioning.tests.measure.load.helpers import Server
from provisioning.tests.prove.fault_injection.test_recovery import attempt, load
from provisioning.tests.prove.fault_injection.test_report import OPTIONS
from provisioning.tests.prove.fault_injection.test_report import (
    injected as injected_fault,
)

BODY = b'{"revision": 1, "answers": {}}'


@pytest.fixture
def run(tmp_path):
    """A run whose load is a timeline, and which never waits."""
    run = FaultRun(SimpleNamespace(stack=None), tmp_path, OPTIONS)
    run.load = SimpleNamespace(timeline=Timeline(), ended=lambda: 0)
    run.report.baseline = Baseline(100, 0.01, 0.005)
    run._watch = lambda seconds: None
    return run


def fault(**changes):
    return Fault("x", "", **{"inject": lambda context: nullcontext(), **changes})


def run_one(run, injected):
    object.__setattr__(run, "options", OPTIONS.__class__(**{**vars(OPTIONS)}))
    object.__setattr__(run.options, "faults", [injected])
    run._wait_for_recovery = lambda *arguments, **options: 0.5
    run._inject_faults()
    return run.report.faults[0]


def test_a_fault_is_injected_and_healed(run, capsys):
    done = []

    @contextmanager
    def noted(name, context):
        done.append(name)
        yield
        done.append(f"end of {name}")

    injected = fault(inject=partial(noted, "fault"), setup=partial(noted, "setup"))
    result = run_one(run, injected)
    assert done == ["setup", "fault", "end of fault", "end of setup"]
    assert (result.missed, result.recovered) == ("", 0.5)
    assert "1/1 x" in capsys.readouterr().out


def test_a_fault_that_can_not_be_injected_is_missed_and_undone(run):
    done = []

    def fail(context):
        raise NotInjected("it was not running")

    @contextmanager
    def setup(context):
        yield
        done.append("undone")

    injected = fault(inject=fail, setup=setup)
    assert run_one(run, injected).missed == "it was not running"
    assert done == ["undone"]


def test_faults_are_missed_when_no_time_is_left(run):
    run.began = time.monotonic() - 61
    assert run_one(run, fault()).missed == "no time was left"


def test_a_stack_that_is_slow_before_any_fault_is_refused(run):
    with pytest.raises(TooSlow, match="0 a second"):
        run._warm_up()
    now = time.time()
    run.load.timeline.add(load(now - 1, now + 1))
    run._warm_up()
    assert run.report.baseline.per_second > 0


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
    fault = injected_fault(name="redis-down", recovered=1.25, ratio=1.1)
    fault.failures = Counter({"cut": 2})
    line = fault.line()
    assert line.startswith("redis-down")
    assert line.endswith("recovered in   1.2 s, 2 cut, median save x 1.10")
    never = injected_fault(recovered=None)
    assert never.line().endswith("recovered in   never, no failure")
    assert "did not happen: gone" in injected_fault(missed="gone").line()


def test_only_faults_that_need_root_may_be_prevented():
    context = SimpleNamespace(log_disk=None)
    prevented = [fault.name for fault in FAULTS if fault.prevented(context)]
    assert prevented == ["network-parted", "log-disk-full"]


def test_helpers_and_deployments_are_marked():
    helpers = {fault.name: fault.helper for fault in FAULTS if fault.helper}
    assert helpers == {
        f"{name}-down": name for name in ("redis", "memcached", "replica", "rabbitmq")
    }
    unharmed = [fault for fault in FAULTS if fault.unharmed]
    assert [fault.name for fault in unharmed] == ["workers-restarted", "nginx-reloaded"]
    assert all("no save may fail" in fault.description for fault in unharmed)


# Load processes


class FakeProcess:
    def __init__(self, args) -> None:
        self.args = args
        self.exitcode = None

    def start(self):
        pass

    def is_alive(self):
        return self.exitcode is None

    def terminate(self):
        self.exitcode = 0

    def join(self, timeout=None):
        pass

    def kill(self):
        self.exitcode = -9 if self.exitcode is None else self.exitcode


@pytest.fixture
def processes(tmp_path, monkeypatch):
    context = SimpleNamespace(Process=lambda target, args: FakeProcess(args))
    monkeypatch.setattr(
        load_processes.multiprocessing, "get_context", lambda method: context
    )
    people = [(n, f"CODE{n}") for n in range(100)]
    rehearsal = Rehearsal(1, {"pages": []}, people)
    url = "http://127.0.0.1:1"
    return LoadProcesses(tmp_path, rehearsal, url=url, rate=100.0, seed=7)


def test_each_respondent_belongs_to_one_process(processes):
    parts = [process.args[0].people for process in processes.processes]
    numbers = [[number for number, _ in people] for people in parts]
    seats = [process.args[2]["seats"] for process in processes.processes]
    assert seats == [28, 28, 19]
    assert [len(each) for each in numbers] == [34, 33, 33]
    assert sorted(sum(numbers, [])) == list(range(100))


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
    processes.processes[1].terminate = lambda: None
    processes.processes[1].exitcode = 1
    assert not processes.drain()


def test_only_running_processes_are_killed(processes):
    processes.processes[0].exitcode = 0
    processes.kill()
    assert [each.exitcode for each in processes.processes] == [0, -9, -9]


def test_only_the_last_process_loses_replies(processes, monkeypatch):
    sent = []
    monkeypatch.setattr(
        load_processes, "send_signal", lambda *arguments: sent.append(arguments)
    )
    for number, process in enumerate(processes.processes):
        process.pid = number
    processes.lose_replies(True)
    processes.lose_replies(False)
    assert sent == [([2], signal.SIGUSR1), ([2], signal.SIGUSR2)]


def test_an_engine_loses_the_reply_and_not_the_request():
    server = Server()
    engine = LossyEngine(target_of(server.address))
    failures = []
    for share in (0.0, 1.0):
        engine.share_lost = share
        request = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
        engine.ask(request, lambda exchange: failures.append(exchange.failure))
        engine.run()
    engine.close()
    server.close()
    assert failures == ["", "cut"]
    assert len(server.requests) == 2


@pytest.mark.parametrize(("reply", "missed"), [("cut", False), ("200", True)])
def test_a_loss_of_replies_that_nobody_noticed_did_not_happen(reply, missed):
    timeline = Timeline()
    timeline.add([attempt(time.time() + 0.1, reply=reply)])
    switched = []
    load = SimpleNamespace(lose_replies=switched.append, read_logs=lambda: timeline)
    with pytest.raises(NotInjected) if missed else nullcontext():  # noqa: SIM117
        with BY_NAME["replies-lost"].inject(SimpleNamespace(load=load)):
            time.sleep(0.2)
    assert switched == [True, False]


# Faults that have to be healed, whatever happens meanwhile


def full_disk(restarts):
    """A stack whose PostgreSQL restarts, or not, when its log's disk is full."""
    starts = iter(["Monday", "", "Tuesday" if restarts else "Monday"])
    done = []
    stack = SimpleNamespace(
        query=lambda sql: next(starts, "Monday"),
        has_given_up=lambda program: True,
        start=done.append,
    )
    disk = SimpleNamespace(
        fill=lambda: done.append("fill"), empty=lambda: done.append("empty")
    )
    return SimpleNamespace(stack=stack, log_disk=disk), done


def test_a_full_disk_is_emptied_and_postgresql_started_again():
    context, done = full_disk(restarts=True)
    with BY_NAME["log-disk-full"].inject(context):
        assert done == ["fill"]
    assert done == ["fill", "empty", "primary"]


def test_a_full_disk_that_nobody_noticed_is_emptied(monkeypatch):
    monkeypatch.setattr(
        "provisioning.prove.fault_injection.faults.wait_until",
        lambda *args, **named: False,
    )
    context, done = full_disk(restarts=False)
    with pytest.raises(NotInjected), BY_NAME["log-disk-full"].inject(context):
        pass
    assert done == ["fill", "empty", "primary"]


def test_a_suspended_program_continues_after_an_error():
    sent = []
    stack = RunningStack.__new__(RunningStack)
    stack.tree = lambda program: [11, 12]
    stack.signal = lambda *arguments: sent.append(arguments)
    context = SimpleNamespace(stack=stack)
    with pytest.raises(RuntimeError), BY_NAME["redis-hung"].inject(context):
        raise RuntimeError
    assert sent == [([11, 12], signal.SIGSTOP), ([11, 12], signal.SIGCONT)]


def test_a_program_that_does_not_run_can_not_be_killed():
    context = SimpleNamespace(stack=SimpleNamespace(tree=lambda program: []))
    with (
        pytest.raises(NotInjected, match="redis was not running"),
        BY_NAME["redis-wiped"].inject(context),
    ):
        pass
