"""A request that never ends is ended; others of its worker are answered."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from django.test import RequestFactory

from provisioning.commands import ROOT
from provisioning.processes import end_with_parent
from settings import base
from settings.infrastructure import time_limit
from settings.infrastructure.time_limit import (
    RequestTooLong,
    TimeLimitMiddleware,
    Watchdog,
    seconds_for,
)
from settings.tests.patience import patience

PROMPT = "settings.infrastructure.gunicorn_workers.PromptWorker"


class Server:
    """One worker of gunicorn, as nginx reaches it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, path: str, *, seconds: float = 0, **headers: str) -> tuple[int, str]:
        """Raises TimeoutError, or RemoteDisconnected, which nginx answers with 503."""
        client = http.client.HTTPConnection("localhost")
        with socket.socket(socket.AF_UNIX) as client.sock, closing(client):
            client.sock.settimeout(seconds or patience(20))
            client.sock.connect(str(self.path))
            client.request("GET", path, headers=headers)
            reply = client.getresponse()
            return reply.status, reply.read().decode()


@contextmanager
def gunicorn(*options: str, limited: bool = True) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="gs-", dir="/tmp") as folder:
        path = Path(folder, "socket")
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", f"--bind=unix:{path}", *options]
            + ["--no-control-socket", "--graceful-timeout=1", "--preload"]
            + ["settings.tests.infrastructure.looping_application"],
            cwd=ROOT,
            env={**os.environ, "LIMITED": "yes" if limited else "no"},
            stderr=subprocess.DEVNULL,
            preexec_fn=end_with_parent(signal.SIGKILL),
            start_new_session=True,
        )
        server = Server(path)
        try:
            deadline = time.monotonic() + patience(20)
            while time.monotonic() < deadline:
                with suppress(OSError):
                    server.get("/quick")
                    break
                time.sleep(0.05)
            yield server
        finally:
            # Workers that loop would not notice that their master is gone.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


THREADS = ("--worker-class=gthread", "--threads=2", "--timeout=15")


def shortest_timeout() -> int:
    """Return seconds after which gunicorn ends no worker that has nothing to do.

    A worker with threads reports to its master once a second, and not more often
    where the timeout is shorter.
    """
    return round(1 + patience(1))


def until_replaced(server: Server, before: tuple[int, str]) -> None:
    deadline = time.monotonic() + patience(20)
    while True:
        # What the old worker has accepted ends with it.
        with suppress(OSError, http.client.HTTPException):
            status, worker = server.get("/quick")
            if status == 200 and (status, worker) != before:
                return
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_request_that_never_ends_is_answered_and_others_go_on():
    with gunicorn(*THREADS) as server:
        worker = server.get("/quick")
        ended: list[tuple[int, str]] = []
        hostile = threading.Thread(target=lambda: ended.append(server.get("/loop")))
        hostile.start()
        # Those beside it, and those that come while the worker is replaced.
        while hostile.is_alive():
            assert server.get("/quick")[0] == 200
            time.sleep(0.02)
        [(status, page)] = ended
        assert status == 503
        assert "This took too long" in page
        # The worker is replaced: the request stopped between any two steps.
        until_replaced(server, worker)
        reply = server.get("/wait", Accept="application/json")
        assert reply == (503, '{"error": "too_long"}')


def test_without_the_limit_a_thread_is_lost_for_each_such_request():
    seconds = shortest_timeout()
    options = (*THREADS, "--threads=1", f"--timeout={seconds}")
    with gunicorn(*options, limited=False) as server:
        # gunicorn's own limit does not see it: the worker reports to its master,
        # which looks once a second.
        with pytest.raises(TimeoutError):
            server.get("/wait", seconds=seconds + patience(2))
        with pytest.raises(TimeoutError):
            server.get("/quick", seconds=patience(1))


def test_a_request_that_cannot_be_interrupted_costs_only_its_worker():
    with gunicorn(*THREADS, f"--timeout={shortest_timeout()}") as server:
        before = server.get("/quick")
        for _ in range(2):
            with pytest.raises(TimeoutError):
                server.get("/sleep", seconds=1)
        # After the limit, a time of grace, and gunicorn's for what is left.
        until_replaced(server, before)


def test_a_request_that_lets_no_thread_run_costs_only_its_worker():
    with gunicorn(*THREADS, f"--timeout={shortest_timeout()}") as server:
        before = server.get("/quick")
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            server.get("/stuck")
        until_replaced(server, before)


def test_the_respondents_workers_leave_the_reply_to_nginx():
    options = (f"--worker-class={PROMPT}", "--timeout=1")
    with gunicorn(*options, limited=False) as server:
        for path in ("/loop", "/sleep", "/stuck"):
            before = server.get("/quick")
            with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
                server.get(path)
            until_replaced(server, before)


def test_without_the_timeout_a_respondents_worker_is_lost():
    options = (f"--worker-class={PROMPT}", "--timeout=0")
    with gunicorn(*options, limited=False) as server:
        for path in ("/sleep", "/quick"):
            with pytest.raises(TimeoutError):
                server.get(path, seconds=patience(1))


def test_gunicorns_own_worker_would_answer_with_a_page_of_its_own():
    with gunicorn("--worker-class=sync", "--timeout=1", limited=False) as server:
        status, page = server.get("/loop")
        assert (status, "Internal Server Error" in page) == (500, True)


def test_large_uploads_have_more_time(settings):
    settings.REQUEST_SECONDS = base.REQUEST_SECONDS

    def limit(size: object) -> float:
        request = RequestFactory().post("/")
        request.META["CONTENT_LENGTH"] = size
        return seconds_for(request)

    assert (limit(0), limit(""), limit("many")) == (15, 15, 15)
    roles = ROOT / "provisioning" / "ansible" / "roles" / "web" / "defaults"
    written = dict(re.findall(r"^(\w+): (\d+)", (roles / "main.yml").read_text(), re.M))
    assert limit(6_600) < int(written["nginx_proxy_timeout"])
    largest = int(written["largest_upload"]) << 20
    assert limit(largest) < int(written["nginx_upload_timeout"])
    assert limit(0) == int(written["gunicorn_timeout"])


def test_nothing_is_raised_after_a_request_has_ended(monkeypatch):
    """The next request of a thread does not pay for the one before."""
    monkeypatch.setattr(time_limit, "PAUSE", 0.001)
    watchdog = Watchdog()
    for _ in range(300):
        with suppress(RequestTooLong):
            try:
                watchdog.begin(0)
                time.sleep(0.001)
            finally:
                watchdog.end()
        watchdog.end()
        assert watchdog.deadlines == {}
        assert watchdog.interrupted == set()
        sum(range(1000))


def test_a_request_in_time_costs_nothing_but_its_note(rf):
    middleware = TimeLimitMiddleware(lambda request: request)
    request = rf.get("/")
    assert middleware(request) is request
    assert middleware.watchdog.deadlines == {}
