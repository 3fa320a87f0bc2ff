"""A real server on the test database, which tests can kill and start again."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection

from settings.tests.patience import patience

ROOT = Path(__file__).parents[3]
# The same as in `application`, which only the server process may import.
RESET = "/reset/"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server:
    """gunicorn with the production bundles, on loopback."""

    def __init__(self, static_root: Path, log: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
            "GROUNDSWELL_TEST_DATABASE": str(connection.settings_dict["NAME"]),
            "GROUNDSWELL_STATIC_ROOT": str(static_root),
            "GROUNDSWELL_TEST_SERVERS": settings.SERVERS,
            # Charts of nightly scans show how many of them were idle.
            "GROUNDSWELL_JOB_WORKERS": "downloads=16,scans=2",
        }
        self.process: subprocess.Popen | None = None

    def start(self) -> Server:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "gunicorn",
                    "survey.tests.browser.application",
                    f"--bind=127.0.0.1:{self.port}",
                    "--worker-class=gthread",
                    "--threads=8",
                    "--no-control-socket",
                    "--graceful-timeout=2",
                    "--error-logfile=-",
                    "--capture-output",
                ],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + patience(30)
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(self.url, timeout=patience(5)).close()  # noqa: S310
                return self
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def reset(self) -> None:
        """Wait for running requests and empty the caches; start if necessary."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(self.url + RESET, timeout=patience(30)).close()  # noqa: S310
                return
        self.stop()
        self.start()

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End master and worker; SIGKILL leaves them no time to finish requests."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            self.process.wait(patience(15))
            self.process = None

    def kill(self) -> None:
        self.stop(signal.SIGKILL)


_open: list[Server] = []


@contextlib.contextmanager
def open_server(static_root: Path, log: Path) -> Iterator[Server]:
    """Start one server for a whole run.

    Each app has its own fixture; the later ones share the server.
    """
    if _open:
        yield _open[0]
        return
    _open.append(Server(static_root, log).start())
    try:
        yield _open[0]
    finally:
        _open.pop().stop()
