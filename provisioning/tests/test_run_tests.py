"""`provisioning/test` and `provisioning/check`: which tests run where."""

from __future__ import annotations

import json
import re
import signal
import threading
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from provisioning import run_checks, run_tests
from provisioning.commands import Stopped
from provisioning.run_tests import FAST, NEVER_REPEATED, NO_TESTS_COLLECTED
from settings.tests.patience import patience

BOTH = "/servers/0:/servers/1"


@pytest.fixture
def calls(monkeypatch):
    """Record the calls of pytest, with the exit status and failures of each."""
    calls: list[dict] = []
    statuses: dict[str, int] = {}
    failures: dict[str, list[str]] = {}
    numbers = count()

    def start(run, options):
        tests = [each for each in options if "::" in each]
        group = " ".join(tests) or options[options.index("-m") + 1]
        workers = options[options.index("-n") + 1] if "-n" in options else "1"
        servers = run.environment["GROUNDSWELL_TEST_SERVERS"]
        calls.append({"group": group, "workers": workers, "servers": servers})
        if group in failures:
            cache = run.cache / "v/cache"
            cache.mkdir(parents=True, exist_ok=True)
            failures_text = json.dumps(dict.fromkeys(failures[group], True))
            (cache / "lastfailed").write_text(failures_text)
        if run.output:
            run.output.write(f"the output of {group}\n".encode())
        return group

    @contextmanager
    def private_servers(*, in_memory):
        assert in_memory
        yield Path(f"/servers/{next(numbers)}")

    def fail(group: str, *tests: str, status: int = 1) -> None:
        statuses[group], failures[group] = status, list(tests)

    monkeypatch.setattr(run_tests.PytestRun, "start", start)
    monkeypatch.setattr(run_tests, "wait_for_pytest", lambda of: statuses.get(of, 0))
    monkeypatch.setattr(run_tests, "end_pytest", lambda of, number: None)
    monkeypatch.setattr(run_tests, "private_servers", private_servers)
    return calls, fail


def test_each_test_runs_once_and_some_also_on_sqlite(calls, capsys):
    made, _ = calls
    assert run_tests.run_everything([], 2, postgres_only=False) == 0
    assert sorted(made, key=lambda call: call["group"]) == [
        {"group": "alone", "workers": "1", "servers": ""},
        {"group": "not alone", "workers": "2", "servers": BOTH},
        {"group": "sqlite", "workers": "1", "servers": ""},
    ]
    printed = capsys.readouterr().out
    assert "the output of alone" in printed and "the output of sqlite" in printed


@pytest.mark.parametrize("group", ["not alone", "sqlite", "alone"])
def test_a_failure_of_one_group_fails_the_run_and_the_others_run(calls, group):
    made, fail = calls
    fail(group, "a.py::test_one")
    fail("a.py::test_one")
    assert run_tests.run_everything([], 2, postgres_only=False) == 1
    assert {"not alone", "sqlite", "alone"} <= {call["group"] for call in made}


@pytest.mark.parametrize(
    ("group", "servers"), [("not alone", BOTH), ("alone", ""), ("sqlite", "")]
)
def test_a_few_failed_tests_are_repeated_by_themselves(calls, capsys, group, servers):
    made, fail = calls
    fail(group, "a.py::test_one", "b.py::test_two")
    assert run_tests.run_everything([], 2, postgres_only=False) == 0
    repeated = [call for call in made if "::" in call["group"]]
    assert repeated == [
        {"group": "a.py::test_one b.py::test_two", "workers": "1", "servers": servers}
    ]
    assert "because they failed:\n  a.py::test_one\n" in capsys.readouterr().out


def test_many_failed_tests_or_another_error_are_not_repeated(calls):
    made, fail = calls
    fail("not alone", *(f"a.py::test_{number}" for number in range(11)))
    assert run_tests.run_everything([], 2, postgres_only=False) == 1
    fail("not alone")
    assert run_tests.run_everything([], 2, postgres_only=False) == 1
    fail("not alone", "a.py::test_one", status=2)
    assert run_tests.run_everything([], 2, postgres_only=False) == 2
    assert not [call for call in made if "::" in call["group"]]


def test_a_fault_run_that_failed_is_not_repeated(calls):
    made, fail = calls
    stack = Path(run_tests.__file__).parent / "tests/installation/test_stack.py"
    [name] = re.findall(rf"def ({NEVER_REPEATED}\w*)", stack.read_text())
    fail("alone", "a.py::test_one", f"{stack}::{name}")
    assert run_tests.run_everything([], 2, postgres_only=False) == 1
    assert not [call for call in made if "::" in call["group"]]


@pytest.fixture
def stack_under_test(calls, monkeypatch):
    """Let the tests of the whole stack go on until the event is set."""
    over = threading.Event()

    def wait_for_pytest(group: str) -> int:
        if group == "alone":
            assert over.wait(patience(10))
        return 0

    monkeypatch.setattr(run_tests, "wait_for_pytest", wait_for_pytest)
    return over, wait_for_pytest


def groups_of(made: list[dict]) -> set[str]:
    return {call["group"] for call in made}


def test_tests_on_sqlite_follow_those_of_the_stack(
    calls, stack_under_test, monkeypatch
):
    made, _ = calls
    over, wait_for_pytest = stack_under_test
    before = []

    def wait(group: str) -> int:
        if group == "not alone":
            before.append(groups_of(made))
            over.set()
        return wait_for_pytest(group)

    monkeypatch.setattr(run_tests, "wait_for_pytest", wait)
    assert run_tests.run_everything([], 2, postgres_only=False) == 0
    assert "sqlite" not in before[0]
    assert groups_of(made) == {"alone", "not alone", "sqlite"}


def test_an_interrupted_run_starts_no_further_tests(
    calls, stack_under_test, monkeypatch
):
    made, _ = calls
    over, wait_for_pytest = stack_under_test

    def wait(group: str) -> int:
        if group == "not alone":
            raise Stopped(signal.SIGTERM)
        return wait_for_pytest(group)

    monkeypatch.setattr(run_tests, "wait_for_pytest", wait)
    monkeypatch.setattr(run_tests, "end_pytest", lambda of, number: over.set())
    with pytest.raises(Stopped):
        run_tests.run_everything([], 2, postgres_only=False)
    assert groups_of(made) <= {"alone", "not alone"}


def test_chosen_tests_may_belong_to_one_group_only(calls):
    _, fail = calls
    for group in ("not alone", "sqlite"):
        fail(group, status=NO_TESTS_COLLECTED)
    assert run_tests.run_everything(["some_test.py"], 1, postgres_only=False) == 0


def test_choosing_no_test_at_all_is_an_error(calls):
    _, fail = calls
    for group in ("not alone", "sqlite", "alone"):
        fail(group, status=NO_TESTS_COLLECTED)
    status = run_tests.run_everything(["-k", "nothing"], 1, postgres_only=False)
    assert status == NO_TESTS_COLLECTED


def test_one_database_alone_can_be_chosen(calls):
    made, _ = calls
    run_tests.run_everything([], 1, postgres_only=True)
    assert [call["group"] for call in made] == ["alone", "not alone"]


def test_fast_tests_need_no_browser(request):
    assert "not browser" in FAST
    known = request.config.getini("markers")
    for marker in ("sqlite", "alone", "browser", "slow"):
        assert any(line.startswith(f"{marker}:") for line in known)


def test_a_failed_check_is_named_with_its_output(monkeypatch, capfd):
    monkeypatch.setattr(run_checks, "prepare_environment", lambda *files: None)
    monkeypatch.setattr(
        run_checks,
        "static_checks",
        lambda: {
            "good": ["true"],
            "bad": ["sh", "-c", "echo the reason; exit 3"],
        },
    )
    monkeypatch.setattr("sys.argv", ["provisioning/check"])
    assert run_checks.main() == 1
    printed = capfd.readouterr().out
    assert "the reason" in printed
    assert printed.splitlines()[-1].startswith("Failed: bad")
