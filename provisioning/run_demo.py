"""`provisioning/demo`: run Groundswell on this machine, with made-up data."""

from __future__ import annotations

import argparse
import fcntl
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from provisioning.commands import (
    ROOT,
    Refusal,
    Stopped,
    disable_nagle,
    port_number,
    run_command,
    step,
    wait_until,
)
from provisioning.environment import PRODUCTION, PYTHON, manage, prepare_environment
from provisioning.installation.static_files import collect_static, static_changed
from provisioning.processes import start_process, stop_process

# Everything that this command and its settings put into the data folder; the
# lock stays, because it is held while the others are deleted.
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


# A worker that can't start is tried again after so many seconds.
RESTART_PAUSE = 2.0


class Card(TypedDict):
    role: str
    code: str
    name: str
    school: str


class Login(TypedDict):
    email: str
    role: str


class DemoPeople(TypedDict):
    """The JSON that `load_demo --json` prints."""

    cards: list[Card]
    staff: list[Login]
    staff_email: str
    # Empty where one was given when the data were made.
    staff_password: str


def main() -> int:
    options = parser().parse_args()
    # Links in e-mails begin with this address.
    os.environ.setdefault("GROUNDSWELL_URL", f"http://127.0.0.1:{options.port}")
    data = Path(os.environ.get("GROUNDSWELL_DATA") or ROOT / ".demo").absolute()
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings.embedded",
        "GROUNDSWELL_DATA": str(data),
        # For made-up people nobody needs an authenticator.
        "GROUNDSWELL_SECOND_FACTOR": "off",
    }
    with _locked(data) as lock:
        listen(options.port).close()
        if options.fresh:
            delete_data(data)
        prepare_environment(PRODUCTION)
        people = _prepare(data, environment)
        # Another program may have taken the port in between.
        with listen(options.port) as listener:
            server = _start_server(environment, listener, lock)
        worker_lock = os.dup(lock)
        worker = _start_worker(data, environment, worker_lock)
    try:
        with step("Starting the server"):
            _wait_for_login_page(options.port, server)
        print(welcome(options.port, people), flush=True)
        tried = time.monotonic()
        while server.poll() is None:
            if worker.poll() is not None and time.monotonic() > tried + RESTART_PAUSE:
                worker = _start_worker(data, environment, worker_lock)
                tried = time.monotonic()
            time.sleep(0.5)
        raise Refusal("The server ended by itself")
    except Stopped:
        return 0
    finally:
        stop_process(server, worker, seconds=20)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="provisioning/demo",
        description="Starts Groundswell on 127.0.0.1 with a demonstration's data, and"
        " keeps it running until Ctrl-C. The data stay in .demo for the next time, or"
        " in the folder that GROUNDSWELL_DATA names.",
    )
    parser.add_argument(
        "--port", type=port_number, default=8000, help="instead of 8000"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="delete the demonstration's data first"
    )
    return parser


@contextmanager
def _locked(data: Path) -> Iterator[int]:
    """Lock the data folder, which every process of the demonstration inherits."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (data / "demo.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal(f"Another demo is running on the data in {data}") from None
        yield lock.fileno()


def listen(port: int) -> socket.socket:
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=2048)
    except PermissionError:
        raise Refusal(f"Only root may serve on port {port}; try --port 8000") from None
    except OSError:
        raise Refusal(
            f"Port {port} is taken by another program; choose one with --port"
        ) from None
    return disable_nagle(listener)


def delete_data(data: Path) -> None:
    for name in OWN_FILES:
        path = data / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _prepare(data: Path, environment: Mapping[str, str]) -> DemoPeople:
    with step("Preparing the database"):
        manage("migrate", "--verbosity=0", environment=environment)
    if static_changed(data / "collected"):
        with step("Joining style sheets and scripts"):
            collect_static(data / "collected", environment, replace=True)
    with step("Loading the demonstration's data"):
        people: DemoPeople = json.loads(
            manage("load_demo", "--json", environment=environment)
        )
        return people


def _start_server(
    environment: Mapping[str, str], listener: socket.socket, lock: int
) -> subprocess.Popen[bytes]:
    command = [str(PYTHON), "-m", "gunicorn", "settings.wsgi", "--no-control-socket"]
    # One process, because the cache is in its memory; threads, because most of
    # a page save is waiting for the disk.
    command += ["--worker-class", "gthread", "--threads", "8", "--timeout", "15"]
    command += ["--graceful-timeout", "5"]
    command += ["--bind", f"fd://{listener.fileno()}", "--log-level", "warning"]
    if os.access("/dev/shm", os.W_OK):  # noqa: S108
        # The worker's heartbeat, on a disk, would wait behind the answers.
        command += ["--worker-tmp-dir", "/dev/shm"]  # noqa: S108
    return start_process(
        command, cwd=ROOT, env=environment, pass_fds=(listener.fileno(), lock)
    )


def _start_worker(
    data: Path, environment: Mapping[str, str], lock: int
) -> subprocess.Popen[bytes]:
    """Start `manage.py work`, whose output goes to work.log."""

    def private(path: str, flags: int) -> int:
        return os.open(path, flags, mode=0o600)

    with open(data / "work.log", "a", opener=private) as log:
        return start_process(
            [PYTHON, ROOT / "manage.py", "work"],
            output=log,
            cwd=ROOT,
            env=environment,
            pass_fds=(lock,),
        )


def _wait_for_login_page(port: int, server: subprocess.Popen[bytes]) -> None:
    status: int | None = None

    def is_decided() -> bool:
        nonlocal status
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/")
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            status = None
        finally:
            connection.close()
        return server.poll() is not None or status == http.client.OK

    wait_until(is_decided, seconds=30, pause=0.1)
    if server.poll() is not None:
        raise Refusal("The server does not start; see the reason above")
    if status != http.client.OK:
        raise Refusal(f"The login page is not served; its status is {status}")


def welcome(port: int, people: DemoPeople) -> str:
    address = f"http://127.0.0.1:{port}/"
    password = people["staff_password"] or "(the password given when it was made)"
    lines = [
        "",
        f"Groundswell is running: {address}",
        "",
        "Take a survey with one of these codes:",
    ]
    lines += [
        f"  {card['role']:<8} {card['code']}  {card['name']}, {card['school']}"
        for card in people["cards"]
    ]
    lines += [
        "",
        f"Look around as staff at {address}console/, all with the password {password}",
    ]
    lines += [f"  {login['email']:<32} {login['role']}" for login in people["staff"]]
    lines += [
        f"  {people['staff_email']:<32} engineer, at {address}engineers/",
        "  No second factor is asked for: this is a demonstration, of made-up people.",
        "",
        "Ctrl-C stops it; the data stay for the next time (--fresh begins again).",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(run_command("provisioning/demo", main))
