"""Programs of a running stack, by the names of its supervisor."""

from __future__ import annotations

import pytest

from provisioning.commands import Refusal
from provisioning.prove.fault_injection.stack import RunningStack


class FakeSupervisor:
    """Two gunicorns in a group, Redis that runs, and a primary that gave up."""

    def __init__(self) -> None:
        self.states = {
            ("taking", "taking_0"): (11, "RUNNING"),
            ("taking", "taking_1"): (12, "RUNNING"),
            ("redis", "redis"): (13, "RUNNING"),
            ("primary", "primary"): (0, "FATAL"),
        }
        self.calls: list[tuple[str, str]] = []

    def getAllProcessInfo(self):  # noqa: N802
        return [
            {"group": group, "name": name, "pid": pid, "statename": state}
            for (group, name), (pid, state) in self.states.items()
        ]

    def startProcessGroup(self, name, wait):  # noqa: N802
        self.calls.append(("start", name))

    def stopProcessGroup(self, name, wait):  # noqa: N802
        self.calls.append(("stop", name))


@pytest.fixture
def stack(tmp_path):
    stack = RunningStack.__new__(RunningStack)
    stack.folder = tmp_path
    stack.calls = FakeSupervisor()
    return stack


def test_a_group_stands_for_all_its_programs(stack):
    assert stack.pids("taking") == [11, 12]
    assert stack.pids("taking_1") == [12]
    assert stack.pids("primary") == []


def test_all_programs_of_a_group_are_stopped_and_started(stack):
    stack.stop("redis")
    stack.start("taking")
    assert stack.calls.calls == [("stop", "redis"), ("start", "taking")]


def test_a_program_that_the_supervisor_gave_up_is_found(stack):
    assert stack.has_given_up("primary")
    assert not stack.has_given_up("taking")


def test_a_program_that_does_not_come_back_is_refused(stack):
    stack.wait_for("redis", seconds=5)
    with pytest.raises(Refusal, match="primary did not come back within 0 s"):
        stack.wait_for("primary", seconds=0)


def test_the_address_is_read_from_the_stack_file(stack):
    (stack.folder / "etc").mkdir()
    path = stack.folder / "etc" / "stack.json"
    path.write_text('{"address": "http://127.0.0.1:8080/"}')
    assert stack.address == "http://127.0.0.1:8080"


def test_a_database_that_stays_away_is_refused(stack, monkeypatch):
    answers = [Refusal, None]

    def query(sql):
        answer = answers.pop(0)
        if answer:
            raise answer

    monkeypatch.setattr(stack, "query", query)
    stack.wait_for_database(seconds=5)
    answers[:] = [Refusal] * 100
    with pytest.raises(Refusal, match="PostgreSQL did not come back"):
        stack.wait_for_database(seconds=0)
