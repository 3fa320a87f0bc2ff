"""`provisioning/test` and `provisioning/check`: which tests run where."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from provisioning import run_checks, run_tests
from provisioning.run_tests import FAST, NO_TESTS_COLLECTED


@pytest.fixture
def calls(monkeypatch):
    """Record the calls of pytest, with the exit status that each returns."""
    calls: list[dict] = []
    statuses: dict[str, int] = {}
    numbers = count()

    def start_pytest(chosen, *, select="", workers=1, servers=(), output=None):
        calls.append({"select": select, "workers": workers, "servers": sorted(servers)})
        if output:
            output.write(f"the output of {select}\n".encode())
        return select

    @contextmanager
    def private_servers(*, in_memory):
        assert in_memory
        yield Path(f"/servers/{next(numbers)}")

    monkeypatch.setattr(run_tests, "start_pytest", start_pytest)
    monkeypatch.setattr(run_tests, "wait_for_pytest", lambda of: statuses.get(of, 0))
    monkeypatch.setattr(run_tests, "private_servers", private_servers)
    return calls, statuses


def test_each_test_runs_once_and_some_also_on_sqlite(calls, capsys):
    made, _ = calls
    assert run_tests.run_everything([], 2, postgres_only=False) == 0
    both = [Path("/servers/0"), Path("/servers/1")]
    assert made == [
        {"select": "not alone", "workers": 2, "servers": both},
        {"select": "sqlite", "workers": 1, "servers": []},
        {"select": "alone", "workers": 1, "servers": both},
    ]
    assert "the output of sqlite" in capsys.readouterr().out


@pytest.mark.parametrize("group", ["sqlite", "alone"])
def test_a_failure_of_one_group_fails_the_run(calls, group):
    made, statuses = calls
    statuses[group] = 1
    assert run_tests.run_everything([], 2, postgres_only=False) == 1
    assert len(made) == 3


def test_a_failure_on_postgresql_ends_the_run(calls):
    made, statuses = calls
    statuses["not alone"] = 1
    assert run_tests.run_everything([], 2, postgres_only=False) == 1
    assert len(made) == 1


def test_chosen_tests_may_belong_to_one_group_only(calls):
    _, statuses = calls
    statuses.update({"not alone": NO_TESTS_COLLECTED, "sqlite": NO_TESTS_COLLECTED})
    assert run_tests.run_everything(["some_test.py"], 1, postgres_only=False) == 0


def test_choosing_no_test_at_all_is_an_error(calls):
    _, statuses = calls
    for group in ("not alone", "sqlite", "alone"):
        statuses[group] = NO_TESTS_COLLECTED
    status = run_tests.run_everything(["-k", "nothing"], 1, postgres_only=False)
    assert status == NO_TESTS_COLLECTED


def test_one_database_alone_can_be_chosen(calls):
    made, _ = calls
    run_tests.run_everything([], 1, postgres_only=True)
    assert [call["select"] for call in made] == ["not alone", "alone"]


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
