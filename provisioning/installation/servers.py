"""Start private instances of the stack's servers, on Unix sockets in one folder.

The folder holds PostgreSQL (`.s.PGSQL.5432`), a replica of it (`.s.PGSQL.5433`),
pgbouncer for both (`.s.PGSQL.6432`), `redis.sock` and `memcached.sock`, and is
deleted after them. They are configured by the same roles as the stack.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from provisioning.commands import Refusal, listen, output_of, reason, wait_until
from provisioning.installation import postgresql
from provisioning.installation.environment import PYTHON
from provisioning.installation.playbook import run_playbook
from provisioning.installation.supervisor import Supervisor
from provisioning.processes import start_process, stop_process

SOCKETS = {
    "primary": ".s.PGSQL.5432",
    "replica": ".s.PGSQL.5433",
    "pgbouncer": ".s.PGSQL.6432",
    "redis": "redis.sock",
    "memcached": "memcached.sock",
}
# Bytes that one set of servers may need during a test run, with room to spare.
MEMORY_NEEDED = 6 << 30
# RabbitMQ takes longer to start than all others, and no test uses it.
LEFT_OUT = "queue,application,web,worker,load"


@contextmanager
def private_servers(
    *,
    in_memory: bool = False,
    backs_up: bool = False,
    to_host: bool = False,
) -> Iterator[Path]:
    """Start all servers, yield the folder of their sockets, and stop them.

    `in_memory` puts their data into memory, if there is room: tests empty the
    database hundreds of times, and each time waits for about 200 files to reach
    the disk. Settings are the same, so measurements need a disk. `to_host` puts
    the backups on another host, which is another address of this machine.
    """
    # Not TMPDIR: the path of a Unix socket ends at 107 bytes.
    parent = Path("/tmp")  # noqa: S108
    memory = Path("/dev/shm")  # noqa: S108
    if in_memory and memory.is_dir() and shutil.disk_usage(memory).free > MEMORY_NEEDED:
        parent = memory
    folder = Path(tempfile.mkdtemp(prefix="groundswell-", dir=parent))
    # PostgreSQL and pgbouncer refuse to run as root.
    user = "postgres" if os.geteuid() == 0 else None
    variables = _variables_of(folder, user)
    if backs_up:
        variables["backup_repository"] = "host" if to_host else "posix"
    if to_host:
        variables |= _variables_of_repository(folder, user)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        options = ("--tags=files", f"--skip-tags={LEFT_OUT}")
        run_playbook(folder, variables, *options, quietly=True)
        _run_script(folder, "primary/initialise", user)
        if to_host:
            stack.enter_context(_repository_host(folder, user))
        supervisor = stack.enter_context(_supervised(folder))
        _run_script(folder, "primary/prepare", None)
        if backs_up:
            _run_script(folder, "backup/prepare", None if to_host else user)
        for name in SOCKETS:
            _wait_for(folder, name, supervisor)
        yield folder


def _variables_of(folder: Path, user: str | None) -> dict[str, object]:
    caller = pwd.getpwuid(os.geteuid()).pw_name
    return {
        "home": str(folder),
        "run": str(folder),
        "files_only": True,
        "server_user": user or "",
        "python": str(PYTHON),
        "postgresql_bin": str(postgresql.postgresql_programs()),
        # No program of these servers shows a time.
        "time_zone": "UTC",
        # No passwords: whoever may start the servers may use each role.
        "postgresql_passwords": {},
        "superusers": sorted({caller, user or caller}),
        # The data are deleted after the tests anyway.
        "initdb_options": "--no-sync",
        "backup_repository": "none",
        # In the tests the owner does what the respondents' pool does.
        "owner_settings": {"lock_timeout": "1s", "statement_timeout": "3s"},
    }


def _variables_of_repository(folder: Path, user: str | None) -> dict[str, object]:
    """Return those of another host, which has no name but a number."""
    with closing(listen(0)) as probe:
        port = probe.getsockname()[1]
    return {
        "backup_host": "127.0.0.2",
        "backup_host_folder": f"{folder}/host",
        "backup_host_etc": f"{folder}/etc/backup/repository_host",
        "backup_host_command": f"runuser -u {user} -- sh -c" if user else "sh -c",
        "backup_port": port,
    }


def _run_script(folder: Path, name: str, user: str | None) -> None:
    output_of(
        ["sh", folder / "etc" / name],
        failing=f"PostgreSQL's script {name} failed",
        user=user,
    )


@contextmanager
def _repository_host(folder: Path, user: str | None) -> Iterator[None]:
    """Run what a host with the repository runs, with the configuration for it."""
    (folder / "host").mkdir()
    if user:
        shutil.chown(folder / "host", user, user)
    config = folder / "etc/backup/repository_host/pgbackrest.conf"
    with (folder / "log" / "repository_host.log").open("w") as output:
        process = start_process(
            ["pgbackrest", f"--config={config}", "server"],
            output=output,
            cwd=Path("/"),
            user=user,
        )
    try:
        yield
    finally:
        stop_process(process)


@contextmanager
def _supervised(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    # In a session of its own: a Ctrl-C is for the tests, and the servers are
    # stopped after them.
    supervisord = PYTHON.with_name("supervisord")
    process = start_process(
        [supervisord, "--nodaemon", f"--configuration={folder}/etc/supervisord.conf"],
        output=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        yield process
    finally:
        # All at once; a supervisor that ends stops one after another.
        with suppress(OSError), closing(Supervisor(folder, run=folder)) as supervisor:
            supervisor.calls.stopAllProcesses()
        stop_process(process, seconds=30)


def _wait_for(folder: Path, name: str, supervisor: subprocess.Popen[bytes]) -> None:
    def accepts() -> bool:
        if name in ("primary", "replica"):
            # Listening is not enough: a replica refuses until it is consistent.
            return postgresql.accepts(folder, int(SOCKETS[name].rpartition(".")[2]))
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(folder / SOCKETS[name])) == 0

    wait_until(lambda: supervisor.poll() is not None or accepts(), seconds=30)
    if not accepts():
        log = folder / "log" / f"{name}.log"
        output = log.read_text(errors="replace") if log.exists() else ""
        raise Refusal(f"{name} does not start: {reason(output)}")
