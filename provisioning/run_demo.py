"""Run Groundswell on 127.0.0.1 with made-up data until Ctrl-C.

The data stay in .demo, or in the folder that GROUNDSWELL_DATA names.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from provisioning.commands import (
    ROOT,
    Refusal,
    Stopped,
    command_parser,
    fetch,
    listen,
    output_of,
    port_number,
    refuse_unless_served,
    step,
    wait_until,
)
from provisioning.in_django import arguments_for
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    prepare_environment,
)
from provisioning.installation.static_files import collect_static
from provisioning.processes import start_process, stop_process

# Everything that this command and its settings put into the data folder; the
# lock stays, because it is held while the others are deleted.
OWN_FILES = (
    *("groundswell.sqlite3", "groundswell.sqlite3-wal", "groundswell.sqlite3-shm"),
    *("secrets.json", "staff.txt", "work.log"),
    *("collected", "files", "mail", "feed"),
)


def main() -> int:
    options = parser().parse_args()
    address = f"http://127.0.0.1:{options.port}/"
    # Links in e-mails begin with this address.
    os.environ.setdefault("GROUNDSWELL_URL", address.rstrip("/"))
    data = Path(os.environ.get("GROUNDSWELL_DATA") or ROOT / ".demo").absolute()
    environment = environment_of(data)
    with locked(data) as lock:
        listen(options.port).close()
        if options.fresh:
            delete_data(data)
        prepare_environment(PRODUCTION)
        with listen(0) as free:
            feed_port = free.getsockname()[1]
        collect_static(data / "collected", environment, replace=True)
        people = prepare_data(data, environment, feed_port)
        # Another program may have taken the port in between.
        with listen(options.port) as listener:
            server = _start_server(environment, listener, lock)
        worker_lock = os.dup(lock)
        worker = _start_worker(data, environment, worker_lock)
        (data / "feed").mkdir(mode=0o700, exist_ok=True)
        feed_server = start_process(
            [str(PYTHON), "-m", "http.server", str(feed_port), "--bind=127.0.0.1"]
            + [f"--directory={data / 'feed'}"],
            output=subprocess.DEVNULL,
            cwd=ROOT,
        )
    try:
        with step("Starting the server"):
            wait_until(
                lambda: server.poll() is not None or fetch(address)[0] == 200,
                seconds=30,
                pause=0.1,
            )
            if server.poll() is not None:
                raise Refusal("The server does not start; see the reason above")
            refuse_unless_served(address)
        print(welcome(address, people), flush=True)
        while server.poll() is None:
            # Also the pause before a worker that can't start is tried again.
            time.sleep(1)
            if worker.poll() is not None:
                worker = _start_worker(data, environment, worker_lock)
        raise Refusal("The server ended by itself")
    except Stopped:
        return 0
    finally:
        stop_process(server, worker, feed_server, seconds=20)


def environment_of(data: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings.embedded",
        "GROUNDSWELL_DATA": str(data),
        # For made-up people nobody needs an authenticator.
        "GROUNDSWELL_SECOND_FACTOR": "off",
        # The demonstration's own feed is served there, without TLS.
        "GROUNDSWELL_FEED_NETWORKS": "127.0.0.1/32",
    }


def prepare_data(
    data: Path, environment: Mapping[str, str], feed_port: int
) -> dict[str, Any]:
    """Migrate and fill the database; return codes, staff and their password."""
    feed = f"http://127.0.0.1:{feed_port}"
    feed_options = [f"--feed-folder={data / 'feed'}", f"--feed-address={feed}"]
    with step("Preparing the database and its data"):
        loaded = output_of(
            [PYTHON, *arguments_for("run_demo.load_data", options=feed_options)],
            failing="The demonstration can't be prepared",
            env=environment,
        )
    people: dict[str, Any] = json.loads(loaded.splitlines()[-1])
    return people


def parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--port", type=port_number, default=8000, help="Serve on this port (8000).")
    add("--fresh", action="store_true", help="Delete the data of earlier runs first.")
    return parser


@contextmanager
def locked(data: Path) -> Iterator[int]:
    """Lock the data folder, which every process of the demonstration inherits."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (data / "demo.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal(f"Another demo is running on the data in {data}") from None
        yield lock.fileno()


def delete_data(data: Path) -> None:
    for path in (data / name for name in OWN_FILES):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def load_data(*, options: list[str]) -> Any:
    """Create the tables and the data; return who is there. Runs in Django."""
    from django.core.management import call_command

    loaded = io.StringIO()
    call_command("migrate", verbosity=0)
    call_command("load_demo", "--json", *options, stdout=loaded)
    # What everybody may read of the last wave, beside that of the one before.
    for name in ("demo-first-students", "demo-last-students"):
        call_command(
            "publish_results",
            name,
            benchmark="demo-first-students",
            chosen_by="state@groundswell.example",
            stdout=io.StringIO(),
        )
    return json.loads(loaded.getvalue())


def _start_server(
    environment: Mapping[str, str], listener: socket.socket, lock: int
) -> subprocess.Popen[bytes]:
    command = [str(PYTHON), "-m", "gunicorn", "settings.wsgi", "--no-control-socket"]
    # One process, because the cache is in its memory; threads, because most of
    # a page save is waiting for the disk.
    command += ["--worker-class=gthread", "--threads=8", "--timeout=15"]
    command += ["--graceful-timeout=5", "--log-level=warning"]
    command += [f"--bind=fd://{listener.fileno()}"]
    if os.access("/dev/shm", os.W_OK):  # noqa: S108
        # The worker's heartbeat, on a disk, would wait behind the answers.
        command += ["--worker-tmp-dir=/dev/shm"]
    return start_process(
        command, cwd=ROOT, env=environment, pass_fds=(listener.fileno(), lock)
    )


def _start_worker(
    data: Path, environment: Mapping[str, str], lock: int
) -> subprocess.Popen[bytes]:
    (data / "work.log").touch(mode=0o600)
    with (data / "work.log").open("a") as log:
        return start_process(
            [PYTHON, ROOT / "manage.py", "work"],
            output=log,
            cwd=ROOT,
            env=environment,
            pass_fds=(lock,),
        )


def welcome(address: str, people: dict[str, Any]) -> str:
    cards = "\n".join(
        f"  {card['role']:<8} {card['code']}  {card['name']}, {card['school']}"
        for card in people["cards"]
    )
    parents = "\n".join(
        f"  {address}open/#{it['code']}  {it['label']}, {it['school']}"
        + (f" (for {it['limit']} people)" if it["limit"] else " (for anyone)")
        for it in people["open_codes"]
    )
    staff = "\n".join(f"  {it['email']:<32} {it['role']}" for it in people["staff"])
    password = people["staff_password"] or "(the password given when it was made)"
    return f"""
Groundswell is running: {address}

Take a survey with one of these codes:
{cards}

Answer as a parent, in English, Spanish or Arabic, by an open code of the school:
{parents}

Read the published results of the last wave, as anybody may: {address}results/
  The page of each school leads to its own: {address}schools/?q=lincoln

Look around as staff at {address}console/, all with the password {password}
{staff}
  {people["staff_email"]:<32} engineer, at {address}engineers/
  Fetch a roster at {address}console/feeds/: choose Try it, then Scan now. For a scan
  that is held, change the feed's address to end with riverside-without-a-school.zip.
  No second factor is asked for: this is a demonstration, of made-up people.

Ctrl-C stops it; the data stay for the next time (--fresh begins again)."""
