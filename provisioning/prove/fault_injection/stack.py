"""Control a running stack: its programs, processes and databases.

Nothing outside its folder is touched: a process is signalled only if it
descends from the supervisor that answers on this folder's own socket.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from provisioning import processes
from provisioning.commands import Refusal, reason, wait_until
from provisioning.installation.postgresql import superuser_connection
from provisioning.installation.promotion import PRIMARY
from provisioning.installation.stack_folder import addresses_of, environment_of
from provisioning.installation.supervisor import Supervisor
from provisioning.measure.benchmarks.stack import Application

START_SECONDS = 30.0


class RunningStack(Supervisor):
    """Raises Refusal where no stack runs."""

    def __init__(self, folder: Path, *, run: Path | None = None) -> None:
        self.folder = folder.resolve()
        self.run = run or self.folder / "run"
        super().__init__(self.folder, run=self.run)
        if not self.is_running():
            raise Refusal(f"No stack runs in {self.folder}")
        self.supervisor_pid: int = self.calls.getPID()
        if str(self.folder) not in processes.command_line(self.supervisor_pid):
            raise Refusal(f"The supervisor of {self.folder} is another stack's")

    @property
    def address(self) -> str:
        return addresses_of(self.folder)["address"].rstrip("/")

    # Programs, by the supervisor's name of a program or of a group

    def tree(self, name: str) -> list[int]:
        return [
            each
            for pid in self.pids(name)
            for each in [pid, *processes.descendants_of(pid)]
        ]

    def stop(self, name: str) -> None:
        self.calls.stopProcessGroup(name, True)

    def start(self, name: str) -> None:
        """Start a program, even if the supervisor has given it up."""
        self.calls.startProcessGroup(name, False)

    def has_given_up(self, name: str) -> bool:
        return any(program["statename"] == "FATAL" for program in self.programs(name))

    def wait_for(self, name: str, *, seconds: float = START_SECONDS) -> None:
        def is_running() -> bool:
            programs = self.programs(name)
            return all(program["statename"] == "RUNNING" for program in programs)

        if not wait_until(is_running, seconds=seconds, pause=0.1):
            raise Refusal(f"{name} did not come back within {seconds:.0f} s")

    @contextmanager
    def stopped(self, *names: str) -> Iterator[None]:
        try:
            for name in reversed(names):
                self.stop(name)
            yield
        finally:
            for name in names:
                self.start(name)
            for name in names:
                self.wait_for(name)

    @contextmanager
    def suspended(self, *names: str) -> Iterator[None]:
        pids = [pid for name in names for pid in self.tree(name)]
        self.signal(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(pids, signal.SIGCONT)

    # Signals reach only processes of this stack

    def signal(self, pids: Iterable[int], number: int) -> None:
        processes.send_signal(self._own(pids), number)

    def kill_together(self, pids: Iterable[int]) -> None:
        processes.kill_together(self._own(pids))

    def _own(self, pids: Iterable[int]) -> list[int]:
        supervisor = self.supervisor_pid
        members = {supervisor, *processes.descendants_of(supervisor)}
        return [pid for pid in pids if pid in members]

    # Databases and commands

    def connect(self, port: int = PRIMARY) -> Any:
        return superuser_connection(self.run, port)

    def query(self, sql: str, *, port: int = PRIMARY) -> Any:
        """Return the first value of the first row, if any. Raises Refusal."""
        import psycopg2

        try:
            with closing(self.connect(port)) as connection:
                cursor = connection.cursor()
                cursor.execute(sql)
                row = cursor.fetchone() if cursor.description else None
                return row[0] if row else None
        except psycopg2.Error as error:
            raise Refusal(f"PostgreSQL: {reason(str(error))}") from None

    def wait_for_database(self, *, seconds: float = START_SECONDS) -> None:
        def answers() -> bool:
            with suppress(Refusal):
                self.query("SELECT 1")
                return True
            return False

        if not wait_until(answers, seconds=seconds, pause=0.1):
            raise Refusal("PostgreSQL did not come back")

    @property
    def application(self) -> Application:
        environment = {**os.environ, **environment_of(self.folder, "manage")}
        return Application(environment=environment, run=self.run)
