from __future__ import annotations

import json
import sys
import time
from itertools import islice, repeat

import pytest

from provisioning.commands import Refusal
from provisioning.measure.benchmarks import timed_requests
from provisioning.measure.benchmarks.stack import Application, sql_file
from provisioning.measure.benchmarks.timed_requests import (
    fetch_requests,
    figures_of,
    in_turns,
    send_requests,
)
from provisioning.measure.load.respondent import save_requests
from provisioning.measure.load.target import target_of
from provisioning.tests.measure.load.conftest import server  # noqa: F401
from provisioning.tests.measure.load.helpers import logged_in_respondent, reply


def test_each_reply_has_its_time_and_size(server):  # noqa: F811
    server.answer = lambda request, send: send(reply(b"x" * 700, "404 Not Found"))
    target = target_of(server.address)
    requests = fetch_requests(target, "/missing/", status=404, cookie="name=value")
    replies = send_requests(target, [islice(requests, 3)])
    assert [each.bytes for each in replies] == [700] * 3
    assert all(each.milliseconds > 0 for each in replies)
    assert [each.sent for each in replies] == sorted(each.sent for each in replies)
    assert b"GET /missing/" in server.requests[0]
    assert b"Cookie: name=value" in server.requests[0]


def test_a_failed_request_is_a_refusal(server):  # noqa: F811
    server.answer = lambda request, send: send(reply(b"", "404 Not Found"))
    target = target_of(server.address)
    with pytest.raises(Refusal, match="A request failed: {'status 404': 1}"):
        send_requests(target, [fetch_requests(target, "/")])


def test_people_save_again_in_the_next_round(server):  # noqa: F811
    saves = save_requests(logged_in_respondent(server), repeat(1))
    target = target_of(server.address)
    first = send_requests(target, [islice(saves, 4)])
    assert len(first) == 4
    assert send_requests(target, [saves], seconds=0.05)
    bodies = [request.split(b"\r\n\r\n")[1] for request in server.requests]
    revisions = [json.loads(body)["revision"] for body in bodies]
    assert revisions == list(range(100, 100 + len(revisions)))


def test_many_people_save_in_turns_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(timed_requests, "TOGETHER", 2)
    first, second = in_turns([iter("aA"), iter("bB"), iter("cC")])
    assert [next(first), next(second)] == ["a", "b"]
    # Those whose replies are not there yet have no turn.
    assert [next(second), next(second), next(first)] == ["c", "B", "C"]
    assert list(first) + list(second) == ["A"]


def test_requests_are_due_at_a_rate_whatever_the_server_does(server):  # noqa: F811
    def answer(request, send):
        time.sleep(0.02)
        send(reply(b"ok"))

    server.answer = answer
    target = target_of(server.address)
    replies = send_requests(
        target, [fetch_requests(target, "/")], seconds=0.4, rate=100
    )
    # One at a time takes 20 ms, so the last ones wait, and their wait counts.
    assert len(replies) > 25
    assert replies[-1].milliseconds > 100
    assert replies[-1].answered > replies[-1].sent


def test_requests_at_a_rate_that_get_no_reply_are_missing(server, monkeypatch):  # noqa: F811
    monkeypatch.setattr("provisioning.measure.load.crowd.DRAIN", 0.5)
    server.answer = lambda request, send: None
    target = target_of(server.address)
    people = [fetch_requests(target, "/")]
    assert send_requests(target, people, seconds=0.1, rate=50) == []


def test_figures_are_median_percentile_and_maximum():
    median, p95, most = figures_of([float(n) for n in range(1, 101)])
    assert (median, most) == ("50.50", "100.00")
    assert 95 <= float(p95) <= 96
    assert figures_of([1.0, 2.0], 1)[0] == "1.5"


def test_values_are_psqls_variables():
    text = sql_file("finish_people", count=833, salt="saves 1")
    assert text.startswith("\\set count '833'\n\\set salt 'saves 1'\n-- ")


def test_codes_of_a_rehearsal_are_read_from_a_private_file(monkeypatch):
    def manage(self, *arguments: str) -> str:
        [path] = [each for each in arguments if each.startswith("--codes=")]
        with open(path.removeprefix("--codes="), "w") as file:
            file.write("AAAA\nBBBB\n")
        return json.dumps({"arguments": arguments})

    monkeypatch.setattr(Application, "manage", manage)
    details, codes = Application(environment={}).open_rehearsal("--pages=2")
    assert codes == ["AAAA", "BBBB"]
    assert details["arguments"][0] == "open_rehearsal"
    assert "--pages=2" in details["arguments"]


def test_commands_of_another_checkout_use_its_own_code(tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "survey").mkdir()
    (tmp_path / "survey" / "__init__.py").touch()
    # As Celery does while it loads the settings.
    (tmp_path / "manage.py").write_text(
        "import os, sys; sys.path.insert(0, os.getcwd())\n"
        "import survey; print(survey.__file__)"
    )
    printed = Application(environment={}, checkout=tmp_path).manage("check")
    assert printed.strip() == str(tmp_path / "survey" / "__init__.py")
