"""Private instances of the stack's servers, on unix sockets in one folder.

The folder holds PostgreSQL (`.s.PGSQL.5432`), a replica of it (`.s.PGSQL.5433`),
pgbouncer in front of both (`.s.PGSQL.6432`), `redis.sock` and `memcached.sock`,
and goes away with them. They are configured by the same roles as the stack.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from provisioning.commands import Refusal, output_of, reason
from provisioning.environment import PYTHON
from provisioning.installation import packages
from provisioning.installation.ansible_here import (
    ANSIBLE,
    ansible_environment,
    playbook,
    why_failed,
)
from provisioning.installation.home import Supervisor
from provisioning.installation.packages import postgresql_programs
from provisioning.processes import end_with_parent

SOCKETS = {
    "primary": ".s.PGSQL.5432",
    "replica": ".s.PGSQL.5433",
    "pgbouncer": ".s.PGSQL.6432",
    "redis": "redis.sock",
    "memcached": "memcached.sock",
}
# RabbitMQ would take longer to start than all of them, and no test asks it.
LEFT_OUT = "queue,application,web,worker,load"


def missing_packages() -> list[str]:
    """Of the stack, and of the browser that the tests drive."""
    missing = packages.missing_packages()
    return missing if packages.program("chromium") else [*missing, "chromium"]


def _postgres(name: str) -> Path:
    return postgresql_programs() / name


@contextmanager
def private_servers() -> Iterator[Path]:
    """Starts all of them, gives the folder of their sockets, and stops them."""
    # Not TMPDIR: the path of a unix socket ends at 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="groundswell-", dir="/tmp"))  # noqa: S108
    # PostgreSQL and pgbouncer refuse to run as root, and rightly so.
    user = "postgres" if os.geteuid() == 0 else None
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        _write_configuration(folder, user)
        _run_script(folder, "initialise", user)
        supervisor = stack.enter_context(_supervised(folder))
        _run_script(folder, "prepare", user)
        for name, path in SOCKETS.items():
            _wait_for(folder, name, folder / path, supervisor)
        yield folder


def _write_configuration(folder: Path, user: str | None) -> None:
    variables = {
        "home": str(folder),
        "run": str(folder),
        "files_only": True,
        "server_user": user or "",
        "python": str(PYTHON),
        "postgresql_bin": str(postgresql_programs()),
        # Gone after the tests, whatever happens to the machine.
        "initdb_options": "--no-sync",
        # In the tests the owner does what the pool of the respondents does.
        "owner_settings": {"lock_timeout": "1s", "statement_timeout": "3s"},
    }
    done = subprocess.run(
        playbook(
            ANSIBLE / "site.yml",
            f"--inventory={ANSIBLE / 'inventories' / 'here'}",
            "--tags=files",
            f"--skip-tags={LEFT_OUT}",
            variables=variables,
        ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=ansible_environment(folder),
    )
    if done.returncode:
        raise Refusal(why_failed(done.stdout.splitlines()))


def _run_script(folder: Path, name: str, user: str | None) -> None:
    output_of(
        ["sh", folder / "etc" / "primary" / name],
        failing=f"PostgreSQL's script {name} failed",
        user=user,
    )


@contextmanager
def _supervised(folder: Path) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        [
            PYTHON.with_name("supervisord"),
            "--nodaemon",
            f"--configuration={folder}/etc/supervisord.conf",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        # A Ctrl-C is for the tests; the servers are stopped after them.
        start_new_session=True,
        preexec_fn=end_with_parent(signal.SIGTERM),
    )
    try:
        yield process
    finally:
        # At once, for nobody is served any more; ended by itself, it would
        # stop one after another.
        asked = closing(Supervisor(folder, run=folder))
        with suppress(OSError), asked as supervisor:
            supervisor.calls.stopAllProcesses()
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(
    folder: Path, name: str, path: Path, supervisor: subprocess.Popen
) -> None:
    deadline = time.monotonic() + 30
    while supervisor.poll() is None and time.monotonic() < deadline:
        if _accepts(path):
            return
        time.sleep(0.05)
    log = folder / "log" / f"{name}.log"
    said = log.read_text(errors="replace") if log.exists() else ""
    raise Refusal(f"{name} does not start: {reason(said)}")


def _accepts(path: Path) -> bool:
    folder, _, port = str(path).partition(".s.PGSQL.")
    if port in ("5432", "5433"):
        # Listening is not enough: a replica refuses until it is consistent.
        pg_isready = str(_postgres("pg_isready"))
        asked = [pg_isready, "--quiet", "-h", folder, "-p", port]
        return subprocess.run(asked).returncode == 0
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0
