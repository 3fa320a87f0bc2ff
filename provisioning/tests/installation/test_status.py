from __future__ import annotations

import os

from provisioning.installation import stack, up
from provisioning.installation.stack import (
    pool_line,
    print_status,
    readiness,
    readiness_lines,
    users_line,
)


def test_programs_are_listed_with_their_uptime(tmp_path, monkeypatch, capsys):
    usual = {"group": "web", "pid": 0, "statename": "RUNNING", "start": 1000}
    programs = [
        {**usual, "name": "nginx", "pid": os.getpid(), "now": 1000 + 3 * 3600 + 62},
        {**usual, "name": "redis", "statename": "FATAL", "now": 5000},
    ]
    monkeypatch.setattr(stack.Supervisor, "is_running", lambda self: True)
    monkeypatch.setattr(stack.Supervisor, "programs", lambda self: programs)
    addresses = {"address": "http://x/", "monitoring": "http://127.0.0.1:1/"}
    monkeypatch.setattr(stack, "addresses_of", lambda folder: addresses)
    assert print_status(tmp_path) == 1
    _, nginx, redis, *_, last = capsys.readouterr().out.splitlines()
    assert nginx.split()[:4] == ["nginx", "running", str(os.getpid()), "3:01:02"]
    assert redis.split() == ["redis", "fatal", "0", "0:00:00", "0"]
    assert last.endswith(" MB, not running: redis")


def test_a_pools_memory_is_shown_from_least_to_most():
    assert pool_line("taking", [61.2, 58.7, 60.0]) == (
        "taking: 3 workers of 59 to 61 MB, 180 MB together"
    )
    assert pool_line("console", []) == "console: no workers"


def test_a_stack_with_one_system_user_says_so():
    assert "one system user" in users_line(separates=False)
    assert "run as root" in users_line(separates=False)
    assert "one system user" not in users_line(separates=True)


def test_helpers_that_are_away_are_listed_with_consequences():
    checks = {
        "redis": {"ok": True, "detail": "1 ms"},
        "rabbitmq": {"ok": False, "detail": "refused"},
    }
    lines = readiness_lines({"checks": checks, "degraded": ["Jobs wait."]})
    assert lines == [
        "redis       ok    1 ms",
        "rabbitmq    AWAY  refused",
        "Jobs wait.",
    ]


def test_an_unreachable_application_is_reported():
    assert readiness_lines({}) == ["/readyz does not answer"]
    assert readiness("http://127.0.0.1:1/") == {}


def test_a_reply_that_is_not_json_is_no_state(monkeypatch):
    replies = iter([(503, b'{"degraded": ["Jobs wait."]}'), (502, b"<html>")])
    monkeypatch.setattr(up, "fetch", lambda address: next(replies))
    assert readiness("http://x/") == {"degraded": ["Jobs wait."]}
    assert readiness("http://x/") == {}


def test_without_a_supervisor_nothing_runs(tmp_path, capsys):
    assert print_status(tmp_path) == 1
    assert "start it with provisioning/stack up" in capsys.readouterr().out
