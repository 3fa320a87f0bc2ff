"""Control a running stack: its programs, processes and databases.

Nothing outside its folder is touched: a process is signalled only if it
descends from the supervisor that answers on this folder's own socket.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2

from provisioning import processes
from provisioning.commands import Refusal
from provisioning.environment import manage
from provisioning.installation.stack_folder import addresses_of, environment_of
from provisioning.installation.supervisor import Supervisor

PRIMARY, REPLICA = 5432, 5433
START_SECONDS = 30.0


class RunningStack:
    def __init__(self, folder: Path) -> None:
        """Connect to the supervisor. Raises Refusal where no stack runs."""
        self.folder = folder.resolve()
        self.run = self.folder / "run"
        supervisor = Supervisor(self.folder)
        if not supervisor.is_running():
            raise Refusal(f"No stack runs in {self.folder}")
        # Its methods: http://supervisord.org/api.html
        self.supervisor = supervisor.calls
        self.close = supervisor.close
        self.supervisor_pid: int = self.supervisor.getPID()
        if str(self.folder) not in processes.command_line(self.supervisor_pid):
            raise Refusal(f"The supervisor of {self.folder} is another stack's")

    @property
    def address(self) -> str:
        return addresses_of(self.folder)["address"].rstrip("/")

    # Programs, by the supervisor's name of a program or of a group

    def programs(self, name: str) -> list[dict[str, Any]]:
        return [
            program
            for program in self.supervisor.getAllProcessInfo()
            if name in (program["group"], program["name"])
        ]

    def pids(self, name: str) -> list[int]:
        return [program["pid"] for program in self.programs(name) if program["pid"]]

    def pid(self, name: str) -> int:
        pids = self.pids(name)
        if not pids:
            raise Refusal(f"{name} does not run in {self.folder}")
        return pids[0]

    def stop(self, name: str) -> None:
        self.supervisor.stopProcess(_full_name(self.programs(name)[0]), True)

    def start(self, name: str) -> None:
        """Start a program, even if the supervisor has given it up."""
        for program in self.programs(name):
            if program["statename"] not in ("RUNNING", "STARTING"):
                self.supervisor.startProcess(_full_name(program), False)

    def has_given_up(self, name: str) -> bool:
        return any(program["statename"] == "FATAL" for program in self.programs(name))

    def wait_for(self, name: str, *, seconds: float = START_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.programs(name)
            if found and all(program["statename"] == "RUNNING" for program in found):
                return
            time.sleep(0.1)
        raise Refusal(f"{name} did not come back within {seconds:.0f} s")

    # Processes

    def signal(self, pids: Iterable[int], number: int) -> None:
        processes.send_signal(self._own(pids), number)

    def kill_together(self, pids: Iterable[int]) -> None:
        processes.kill_together(self._own(pids))

    def _own(self, pids: Iterable[int]) -> list[int]:
        supervisor = self.supervisor_pid
        own = {supervisor, *processes.descendants_of(supervisor)}
        return [pid for pid in pids if pid in own]

    def tree(self, name: str) -> list[int]:
        """Return a program's processes and all below them."""
        return [
            each
            for pid in self.pids(name)
            for each in [pid, *processes.descendants_of(pid)]
        ]

    # Databases and commands

    def connect(self, port: int = PRIMARY, database: str = "groundswell") -> Any:
        """Connect as superuser, without pgbouncer, and with autocommit."""
        connection = psycopg2.connect(
            host=str(self.run),
            port=port,
            user="postgres",
            dbname=database,
            connect_timeout=5,
        )
        connection.autocommit = True
        return connection

    def query(self, sql: str, *, port: int = PRIMARY) -> Any:
        """Return the first value of the first row, if any."""
        with closing(self.connect(port)) as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    def wait_for_database(self, *, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.query("SELECT 1")
                return
            except psycopg2.Error:
                if time.monotonic() > deadline:
                    raise Refusal("PostgreSQL did not come back") from None
                time.sleep(0.1)

    def manage(self, *arguments: str) -> str:
        environment = {**os.environ, **environment_of(self.folder, "manage")}
        return manage(*arguments, environment=environment)


def _full_name(program: dict[str, Any]) -> str:
    return f"{program['group']}:{program['name']}"
