"""Pages are reported as saved only once they are on disk."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler
from socketserver import UnixStreamServer

import pytest
from django.conf import settings as configured
from django.db import connection

from settings.monitoring import durability_check
from settings.monitoring.answers import NOT_SET_UP
from settings.monitoring.durability import durability, unsafe_settings
from settings.monitoring.durability_check import DurabilityCheck, ask_pool
from settings.monitoring.health import readiness

needs_postgresql = pytest.mark.skipif(
    not configured.SERVERS, reason="SQLite has no such settings"
)


class Pool(BaseHTTPRequestHandler):
    """The respondents' pool, with the settings of the test."""

    def do_GET(self):  # noqa: N802
        self.server.requests.append(self.path)
        body = json.dumps({"unsafe": self.server.unsafe}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "a Unix socket"

    def log_message(self, *arguments):
        pass


@pytest.fixture
def pool(settings, tmp_path):
    path = tmp_path / "taking.sock"
    settings.MONITORED_SOCKETS = [str(tmp_path / "console.sock"), str(path)]
    with UnixStreamServer(str(path), Pool) as server:
        server.unsafe, server.requests = [], []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_pool_whose_commits_are_flushed_is_safe(pool):
    assert ask_pool().ok is True
    assert pool.requests == ["/durability"]


def test_each_unsafe_setting_is_named(pool):
    pool.unsafe = ["synchronous_commit = off"]
    answer = ask_pool()
    assert answer.ok is False
    assert answer.detail == "a crash would lose saved pages: synchronous_commit = off"


def test_a_service_that_could_lose_saved_pages_is_not_ready(pool, monkeypatch):
    answers = dict.fromkeys(
        ("primary", "durability"), durability_check.Answer(True, "")
    )
    monkeypatch.setattr(
        "settings.monitoring.dependency_checks.ask_dependencies", lambda: answers
    )
    assert readiness()["ready"] is True
    pool.unsafe = ["fsync = off"]
    answers["durability"] = ask_pool()
    state = readiness()
    assert state["ready"] is False
    assert "before they are on disk" in state["degraded"][0]


def test_a_pool_that_does_not_answer_is_unknown_and_not_unsafe(settings, tmp_path):
    settings.MONITORED_SOCKETS = [str(tmp_path / "taking.sock")]
    assert ask_pool().ok is None
    settings.MONITORED_SOCKETS = []
    assert ask_pool() == NOT_SET_UP


def test_an_answer_is_kept_for_some_seconds(pool, monkeypatch):
    check = DurabilityCheck()
    assert [check().ok, check().ok] == [True, True]
    assert len(pool.requests) == 1
    monkeypatch.setattr(durability_check, "KEPT", 0.0)
    check.until = 0.0
    pool.unsafe = ["fsync = off"]
    assert [check().ok, check().ok] == [False, False]
    assert len(pool.requests) == 3


@pytest.mark.django_db
def test_the_settings_are_read_in_one_statement(rf, django_assert_num_queries):
    with django_assert_num_queries(1 if configured.SERVERS else 0):
        response = durability(rf.get("/durability"))
    assert json.loads(response.content) == {"unsafe": []}


@needs_postgresql
@pytest.mark.django_db
@pytest.mark.parametrize("value", ["off", "local", "remote_write"])
def test_a_commit_that_does_not_wait_for_the_disk_is_unsafe(value):
    """Set for this session, as it could be for the role or the database."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = %s", [value])
    assert unsafe_settings() == [f"synchronous_commit = {value}"]
