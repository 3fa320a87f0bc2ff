"""Private instances of the stack's servers, on unix sockets in one folder.

The folder holds PostgreSQL (`.s.PGSQL.5432`), pgbouncer in front of it
(`.s.PGSQL.6432`), `redis.sock` and `memcached.sock`, and goes away with them.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template

from provisioning.commands import (
    ROOT,
    Refusal,
    as_user,
    end_with_parent,
    output_of,
    reason,
)

CONFIGS = ROOT / "provisioning" / "configs"

# What the tests call, and the Debian package that has it.
PROGRAMS = {
    "pgbouncer": "pgbouncer",
    "redis-server": "redis-server",
    "memcached": "memcached",
    "chromium": "chromium",
}


def missing_packages() -> list[str]:
    missing = [] if _postgres_folder() else ["postgresql-15"]
    return missing + [
        package for program, package in PROGRAMS.items() if not _program(program)
    ]


def _program(name: str) -> str:
    """Its path, or an empty one where it is missing."""
    # Debian keeps servers where an ordinary user's PATH does not look.
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/bin") or ""


def _postgres_folder() -> Path | None:
    """Where PostgreSQL's programs are: 15 if possible, otherwise the newest."""
    installed = [
        folder
        for folder in Path("/usr/lib/postgresql").glob("*/bin")
        if (folder / "postgres").exists() and int(folder.parent.name) >= 15
    ]
    return min(installed, key=lambda folder: int(folder.parent.name), default=None)


@contextmanager
def private_servers() -> Iterator[Path]:
    """Starts all of them, gives the folder of their sockets, and stops them."""
    # Not TMPDIR: the path of a unix socket ends at 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="groundswell-", dir="/tmp"))  # noqa: S108
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        # PostgreSQL and pgbouncer refuse to run as root, and rightly so.
        user = "postgres" if os.geteuid() == 0 else None
        if user:
            shutil.chown(folder, user, user)
        _make_cluster(folder, user)
        for server in _servers(folder):
            stack.enter_context(_running(server, folder, user))
            if server.name == "PostgreSQL":
                _make_roles(folder, user)
        yield folder


@dataclass(frozen=True)
class Server:
    name: str
    command: Sequence[str | Path]
    socket: str
    stop_signal: signal.Signals = signal.SIGTERM


def _servers(folder: Path) -> list[Server]:
    pgbouncer = _filled("pgbouncer.ini", folder)
    (folder / "users.txt").write_text('"groundswell" ""\n"postgres" ""\n')
    return [
        Server(
            "PostgreSQL",
            [_postgres("postgres"), "-D", folder / "postgresql"],
            ".s.PGSQL.5432",
            # SIGTERM would wait for clients that may never leave.
            signal.SIGINT,
        ),
        Server("pgbouncer", [_program("pgbouncer"), pgbouncer], ".s.PGSQL.6432"),
        Server(
            "Redis",
            [_program("redis-server"), _filled("redis.conf", folder)],
            "redis.sock",
        ),
        Server(
            "Memcached",
            [_program("memcached"), "-s", folder / "memcached.sock", "-m", "64"],
            "memcached.sock",
        ),
    ]


def _postgres(program: str) -> Path:
    folder = _postgres_folder()
    assert folder is not None, "missing_packages() comes first"  # noqa: S101
    return folder / program


def _filled(name: str, folder: Path, into: Path | None = None) -> Path:
    """A copy of the template, with the folder's path in it."""
    text = Template((CONFIGS / name).read_text()).substitute(folder=folder)
    path = (into or folder) / name
    path.write_text(text)
    return path


def _make_cluster(folder: Path, user: str | None) -> None:
    data = folder / "postgresql"
    options = "--data-checksums --no-sync --username=postgres --auth=trust"
    output_of(
        [_postgres("initdb"), *options.split(), "--locale=C.UTF-8", "-D", data],
        failing="PostgreSQL can't make its data folder",
        user=user,
    )
    _filled("postgresql.conf", folder, into=data)
    _filled("pg_hba.conf", folder, into=data)


def _make_roles(folder: Path, user: str | None) -> None:
    roles = _filled("roles.sql", folder)
    options = f"--host={folder} --username=postgres --dbname=postgres --no-psqlrc"
    output_of(
        [_postgres("psql"), *options.split(), "-v", "ON_ERROR_STOP=1", "-f", roles],
        failing="PostgreSQL can't make the roles",
        user=user,
    )


@contextmanager
def _running(server: Server, folder: Path, user: str | None) -> Iterator[None]:
    log = folder / f"{server.name}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            server.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            # A Ctrl-C is for the tests; the servers are stopped after them.
            start_new_session=True,
            preexec_fn=end_with_parent(server.stop_signal),
            **as_user(user),
        )
    try:
        _wait_for(server, folder, process, log)
        yield
    finally:
        _stop(process, server.stop_signal)


def _wait_for(
    server: Server, folder: Path, process: subprocess.Popen, log: Path
) -> None:
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        if _accepts(folder / server.socket):
            return
        time.sleep(0.05)
    raise Refusal(f"{server.name} does not start: {reason(log.read_text())}")


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _stop(process: subprocess.Popen, number: signal.Signals) -> None:
    process.send_signal(number)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
