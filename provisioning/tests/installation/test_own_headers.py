"""What nginx answers by itself has the headers that the application's pages have."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioning.commands import ROOT
from provisioning.installation.environment import PYTHON
from provisioning.tests.installation.recording_upstream import RecordingUpstream
from provisioning.tests.installation.rendered_files import render_web
from provisioning.tests.installation.test_hostile_requests import (
    Server,
    request,
    running_nginx,
)

HSTS = "max-age=31536000; includeSubDomains"
SCRIPT = "js/take.0123456789ab.js"


class Application(RecordingUpstream):
    """Answers as Django does, with headers of its own."""

    def _answer(self, connection) -> None:
        connection.recv(65536)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n"
            b"Strict-Transport-Security: max-age=1\r\n"
            b"X-Content-Type-Options: nosniff\r\n\r\nok"
        )


def served(*, tls: bool) -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    home = folder / "h"
    listens = {
        f"nginx_{name}listen": f"unix:{home}/run/{name or 'public_'}nginx.sock"
        for name in ("", "engineers_", "monitoring_")
    }
    render_web(home, tls=tls, **listens)
    (home / "run").mkdir(exist_ok=True)
    for name in (SCRIPT, "plain.txt"):
        (home / "static" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "static" / name).write_text("file")
    console = Application(home / "run" / "console.sock")
    with running_nginx(home / "etc/nginx/nginx.conf", home / "run/public_nginx.sock"):
        # Nobody answers for respondents.
        yield Server(home / "run/public_nginx.sock", [])
    console.close()
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    yield from served(tls=True)


@pytest.fixture(scope="module")
def server_without_tls() -> Iterator[Server]:
    yield from served(tls=False)


def answer(server: Server, target: str) -> tuple[int, dict[str, list[str]]]:
    """Return the status and the headers, each with all of its values."""
    head = server.ask(request(target)).partition(b"\r\n\r\n")[0].decode()
    first, *lines = head.split("\r\n")
    headers: dict[str, list[str]] = {}
    for name, _, value in (line.partition(": ") for line in lines):
        headers.setdefault(name, []).append(value)
    return int(first.split()[1]), headers


OWN = [
    (f"/static/{SCRIPT}", 200),
    ("/static/plain.txt", 200),
    ("/static/missing.txt", 404),
    ("/static/staticfiles.json", 404),
    ("/readyz", 404),
    ("/engineers/", 404),
    ("//twice", 400),
    ("/", 503),
    ("/take/", 503),
    ("/schools/", 503),
    ("/content/ab-1/r_2/en/3/", 503),
]


@pytest.mark.parametrize(("target", "status"), OWN)
def test_what_nginx_answers_has_them_once(server, target, status):
    given, headers = answer(server, target)
    assert given == status
    assert headers["Strict-Transport-Security"] == [HSTS]
    assert headers["X-Content-Type-Options"] == ["nosniff"]
    if status == 503:
        assert headers["X-Frame-Options"] == ["DENY"]
        assert headers["Referrer-Policy"] == ["same-origin"]
        [policy] = headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy and "base-uri 'none'" in policy


def test_the_applications_own_headers_are_neither_doubled_nor_replaced(server):
    status, headers = answer(server, "/console/")
    assert status == 200
    assert headers["Strict-Transport-Security"] == ["max-age=1"]
    assert headers["X-Content-Type-Options"] == ["nosniff"]


@pytest.mark.parametrize(("target", "status"), OWN)
def test_without_tls_no_browser_is_told_to_insist_on_it(
    server_without_tls, target, status
):
    """It would lock people out of a trial by plain HTTP, for a year."""
    given, headers = answer(server_without_tls, target)
    assert given == status
    assert "Strict-Transport-Security" not in headers
    assert headers["X-Content-Type-Options"] == ["nosniff"]


def test_the_value_is_the_settings():
    program = "from settings import stack; print(stack.SECURE_HSTS_SECONDS)"
    environment = {
        "GROUNDSWELL_SECRET_KEY": "unused",
        "GROUNDSWELL_ACCESS_CODE_KEYS": "1=unused",
        "GROUNDSWELL_TIME_ZONE": "UTC",
    }
    seconds = subprocess.check_output(
        [PYTHON, "-c", program], cwd=ROOT, env=environment, text=True
    )
    assert f"max-age={seconds.strip()}; includeSubDomains" == HSTS
