"""Start a private PostgreSQL cluster that may be killed and broken."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg2

from provisioning import processes
from provisioning.commands import Refusal, output_of, reason
from provisioning.postgresql import postgresql_programs

DATABASE = "groundswell"
# Durable commits, as in the stack. The sockets' folder is what keeps others out.
CONFIGURATION = """
fsync = on
synchronous_commit = on
full_page_writes = on
listen_addresses = ''
unix_socket_directories = '{folder}'
timezone = 'UTC'
"""


class Cluster:
    def __init__(self, folder: Path, programs: Path, user: str | None) -> None:
        """Make the data folder; the cluster is not started."""
        self.folder = folder
        self.data = folder / "postgresql"
        self.programs = programs
        self.user = user
        self.process: subprocess.Popen[bytes] | None = None
        options = "--data-checksums --no-sync --username=postgres --auth=trust"
        output_of(
            [programs / "initdb", *options.split(), "-D", self.data],
            failing="PostgreSQL can't make its data folder",
            user=user,
        )
        configuration = self.data / "postgresql.conf"
        configuration.write_text(CONFIGURATION.format(folder=folder))

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Start with these settings once, and wait until it accepts connections."""
        options = [f"--{name}={value}" for name, value in (settings or {}).items()]
        log = self.folder / "log"
        with log.open("a") as output:
            self.process = processes.start_process(
                [self.programs / "postgres", "-D", self.data, *options],
                output=output,
                cwd=self.folder,
                user=self.user,
                parent_signal=signal.SIGINT,
            )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                self.connect("postgres").close()
                return
            except psycopg2.OperationalError:
                time.sleep(0.02)
        raise Refusal(f"PostgreSQL does not start: {reason(log.read_text())}")

    def kill(self) -> None:
        """Kill the postmaster and its children at once, as a crash would."""
        assert self.process is not None  # noqa: S101
        pid = self.process.pid
        processes.kill_together([pid, *processes.descendants_of(pid)])
        self.process.wait()

    def suspend(self, name: str) -> None:
        """Stop a background process, by the name in its title."""
        assert self.process is not None  # noqa: S101
        pids = [
            pid
            for pid in processes.descendants_of(self.process.pid)
            if name in processes.command_line(pid)
        ]
        assert pids, f"PostgreSQL has no {name}"  # noqa: S101
        processes.send_signal(pids, signal.SIGSTOP)

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()

    def connect(self, database: str = DATABASE) -> Any:
        connection = psycopg2.connect(
            host=str(self.folder), port=5432, user="postgres", dbname=database
        )
        connection.autocommit = True
        return connection

    def execute(
        self, sql: str, values: object = None, database: str = DATABASE
    ) -> None:
        with closing(self.connect(database)) as connection:
            connection.cursor().execute(sql, values)


@contextmanager
def private_cluster() -> Iterator[Cluster]:
    """Make a cluster, which is not started; stop and remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="groundswell-", dir="/tmp"))  # noqa: S108
    user = "postgres" if os.geteuid() == 0 else None
    cluster = None
    try:
        if user:
            shutil.chown(folder, user, user)
        cluster = Cluster(folder, postgresql_programs(), user)
        yield cluster
    finally:
        if cluster:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
