"""A PostgreSQL of the checker's own, which may be killed, filled and broken."""

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
from provisioning.processes import as_user, end_with_parent

DATABASE = "groundswell"
# As in the stack, what makes a commit durable; the sockets' folder is the lock.
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
        self.folder = folder
        self.data = folder / "postgresql"
        self.programs = programs
        self.user = user
        self.process: subprocess.Popen | None = None

    def make(self) -> None:
        options = "--data-checksums --no-sync --username=postgres --auth=trust"
        output_of(
            [self.programs / "initdb", *options.split(), "-D", self.data],
            failing="PostgreSQL can't make its data folder",
            user=self.user,
        )
        text = CONFIGURATION.format(folder=self.folder)
        (self.data / "postgresql.conf").write_text(text)

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """With settings that only this start has; comes back once it serves."""
        options = [f"--{name}={value}" for name, value in (settings or {}).items()]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                preexec_fn=end_with_parent(signal.SIGINT),
                **as_user(self.user),
            )
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                self.connect("postgres").close()
                return
            except psycopg2.OperationalError:
                time.sleep(0.02)
        log = (self.folder / "log").read_text()
        raise Refusal(f"PostgreSQL does not start: {reason(log)}")

    def kill(self) -> None:
        """The postmaster and all its children at once, as a crash would."""
        assert self.process is not None  # noqa: S101
        pid = self.process.pid
        processes.kill_together([pid, *processes.descendants_of(pid)])
        self.process.wait()

    def hold(self, name: str) -> None:
        """Stop a background process, by the name it has in its title."""
        assert self.process is not None  # noqa: S101
        named = [
            pid
            for pid in processes.descendants_of(self.process.pid)
            if name in processes.command_line(pid)
        ]
        assert named, f"PostgreSQL has no {name}"  # noqa: S101
        processes.send_signal(named, signal.SIGSTOP)

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
        self, *statements: str, values: Any = None, database: str = DATABASE
    ) -> None:
        with closing(self.connect(database)) as connection:
            for statement in statements:
                with connection.cursor() as cursor:
                    cursor.execute(statement, values)


@contextmanager
def private_cluster() -> Iterator[Cluster]:
    """Made, not started; ends and goes away whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix="groundswell-", dir="/tmp"))  # noqa: S108
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user, user)
    cluster = Cluster(folder, postgresql_programs(), user)
    try:
        cluster.make()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
