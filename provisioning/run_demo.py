"""`provisioning/demo`: Groundswell on this machine, with a demonstration's data."""

from __future__ import annotations

import argparse
import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from provisioning.commands import (
    ROOT,
    Refusal,
    Stopped,
    output_of,
    run_command,
    step,
    undelayed,
)
from provisioning.environment import PRODUCTION, PYTHON, prepare_environment
from provisioning.installation.static_files import collect_static, static_changed
from provisioning.processes import end_with_parent

# Everything this command and its settings put into the data folder; the lock
# stays, so that it can be held while the others go.
OWN_FILES = (
    "groundswell.sqlite3",
    "groundswell.sqlite3-wal",
    "groundswell.sqlite3-shm",
    "secrets.json",
    "staff.txt",
    "mail",
    "files",
    "work.log",
    "collected",
    "collected.stamp",
)


def main() -> int:
    options = _arguments()
    # What links in mails begin with.
    os.environ.setdefault("GROUNDSWELL_URL", f"http://127.0.0.1:{options.port}")
    data = Path(os.environ.get("GROUNDSWELL_DATA") or ROOT / ".demo").absolute()
    with _held(data) as lock:
        _listen(options.port).close()
        if options.fresh:
            _begin_again(data)
        prepare_environment(PRODUCTION)
        people = _prepare(data)
        # Between the look at the port and here, somebody may have taken it.
        with _listen(options.port) as listener:
            server = _start_server(data, listener, lock)
        worker = Worker(data, os.dup(lock))
    try:
        with step("Starting the server"):
            _wait_for_login_page(options.port, server)
        print(_welcome(options.port, people), flush=True)
        while server.poll() is None:
            worker.keep_running()
            time.sleep(0.5)
        raise Refusal("The server ended by itself")
    except Stopped:
        return 0
    finally:
        _stop(server, worker.process)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/demo",
        description="Starts Groundswell on 127.0.0.1 with a demonstration's data, and"
        " keeps it running until Ctrl-C. The data stay in .demo for the next time, or"
        " in the folder that GROUNDSWELL_DATA names.",
    )
    parser.add_argument("--port", type=_port, default=8000, help="instead of 8000")
    parser.add_argument(
        "--fresh", action="store_true", help="delete the demonstration's data first"
    )
    return parser.parse_args()


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 65535")
    return int(text)


@contextmanager
def _held(data: Path) -> Iterator[int]:
    """The data folder, for one demonstration at a time."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (data / "demo.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal(f"Another demo is running on the data in {data}") from None
        yield lock.fileno()


def _listen(port: int) -> socket.socket:
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=2048)
    except PermissionError:
        raise Refusal(f"Only root may serve on port {port}; try --port 8000") from None
    except OSError:
        raise Refusal(
            f"Port {port} is taken by another program; choose one with --port"
        ) from None
    return undelayed(listener)


def _begin_again(data: Path) -> None:
    for name in OWN_FILES:
        path = data / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _prepare(data: Path) -> dict[str, Any]:
    with step("Preparing the database"):
        _manage(data, "migrate", "--verbosity=0")
    if static_changed(data / "collected"):
        with step("Joining style sheets and scripts"):
            collect_static(data / "collected", _environment(data), anew=True)
    with step("Loading the demonstration's data"):
        return json.loads(_manage(data, "load_demo", "--json"))


def _manage(data: Path, *arguments: str) -> str:
    return output_of(
        [PYTHON, ROOT / "manage.py", *arguments],
        failing=f"manage.py {arguments[0]} failed",
        env=_environment(data),
    )


def _environment(data: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings.embedded",
        "GROUNDSWELL_DATA": str(data),
        # Its people are made up: nobody needs an authenticator to look around.
        "GROUNDSWELL_SECOND_FACTOR": "off",
    }


def _start_server(data: Path, listener: socket.socket, lock: int) -> subprocess.Popen:
    command = [str(PYTHON), "-m", "gunicorn", "settings.wsgi", "--no-control-socket"]
    # One process, for the cache is in its memory; threads, because most of a
    # page save is waiting for the disk.
    options = ["--worker-class", "gthread", "--threads", "8", "--timeout", "15"]
    options += ["--graceful-timeout", "5"]
    options += ["--bind", f"fd://{listener.fileno()}", "--log-level", "warning"]
    if os.access("/dev/shm", os.W_OK):  # noqa: S108
        # The worker's sign of life, on a disk, would wait behind the answers.
        options += ["--worker-tmp-dir", "/dev/shm"]  # noqa: S108
    return subprocess.Popen(
        [*command, *options],
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
        env=_environment(data),
        # The lock is held as long as anybody works on the data.
        pass_fds=(listener.fileno(), lock),
        start_new_session=True,
        preexec_fn=end_with_parent(signal.SIGTERM),
    )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)


class Worker:
    """`manage.py work`, begun again when it dies, and what it says in work.log."""

    # One that can't start at all is not tried all the time.
    PAUSE = 2.0

    def __init__(self, data: Path, lock: int) -> None:
        self.data = data
        self.lock = lock
        self.process = self._start()

    def keep_running(self) -> None:
        if self.process.poll() is not None and time.monotonic() > self.again:
            self.process = self._start()

    def _start(self) -> subprocess.Popen:
        self.again = time.monotonic() + self.PAUSE
        with open(self.data / "work.log", "a", opener=_private) as log:
            return subprocess.Popen(
                [str(PYTHON), str(ROOT / "manage.py"), "work"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=_environment(self.data),
                pass_fds=(self.lock,),
                start_new_session=True,
                preexec_fn=end_with_parent(signal.SIGTERM),
            )


def _wait_for_login_page(port: int, server: subprocess.Popen) -> None:
    deadline = time.monotonic() + 30
    status: int | None = None
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise Refusal("The server does not start; its reason stands above")
        status = _status_of_login_page(port)
        if status == http.client.OK:
            return
        time.sleep(0.1)
    raise Refusal(f"The login page does not come; the server says {status}")


def _status_of_login_page(port: int) -> int | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _stop(*processes: subprocess.Popen) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _welcome(port: int, demo: dict[str, Any]) -> str:
    address = f"http://127.0.0.1:{port}/"
    cards = [
        f"  {card['role']:<8} {card['code']}  {card['name']}, {card['school']}"
        for card in demo["cards"]
    ]
    password = demo["staff_password"] or "(the password given when it was made)"
    logins = [f"  {one['email']:<32} {one['role']}" for one in demo["staff"]]
    lines = [
        "",
        f"Groundswell is running: {address}",
        "",
        "Take a survey with one of these codes:",
        *cards,
        "",
        f"Look around as staff at {address}console/, all with the password {password}",
        *logins,
        f"  {demo['staff_email']:<32} engineer, at {address}engineers/",
        "  No second factor is asked for: this is a demonstration, of made-up people.",
        "",
        "Ctrl-C stops it; the data stay for the next time (--fresh begins again).",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(run_command("provisioning/demo", main))
