"""A running stack, by its home: its programs, its processes, its databases.

Nothing outside the home is touched: a process is signalled only if it
descends from the supervisor that answers on this home's own socket.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg2

from provisioning import processes
from provisioning.commands import ROOT, Refusal, output_of
from provisioning.environment import PYTHON
from provisioning.installation.stack_folder import environment_of
from provisioning.installation.supervisor import Supervisor

PRIMARY, REPLICA = 5432, 5433
STARTED = 30.0


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.run = self.folder / "run"
        self.etc = self.folder / "etc"
        asked = Supervisor(self.folder)
        if not asked.is_running():
            raise Refusal(f"No stack runs in {self.folder}")
        # Its methods: http://supervisord.org/api.html
        self.supervisor = asked.calls
        self.close = asked.close
        self.supervisor_pid: int = self.supervisor.getPID()
        if str(self.folder) not in " ".join(
            processes.command_line(self.supervisor_pid)
        ):
            raise Refusal(f"The supervisor of {self.folder} is another stack's")

    @property
    def address(self) -> str:
        described = json.loads((self.etc / "stack.json").read_text())
        return str(described["address"]).rstrip("/")

    # Programs, as the supervisor names them; a group stands for all of it

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
        self.supervisor.stopProcess(_full(self.programs(name)[0]), True)

    def start(self, name: str) -> None:
        """Also what has died too often for the supervisor to start it again."""
        for program in self.programs(name):
            if program["statename"] not in ("RUNNING", "STARTING"):
                self.supervisor.startProcess(_full(program), False)

    def has_given_up(self, name: str) -> bool:
        return any(one["statename"] == "FATAL" for one in self.programs(name))

    def wait_for(self, name: str, *, seconds: float = STARTED) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.programs(name)
            if found and all(one["statename"] == "RUNNING" for one in found):
                return
            time.sleep(0.1)
        raise Refusal(f"{name} did not come back within {seconds:.0f} s")

    # Processes

    def signal(self, pids: Iterable[int], number: signal.Signals) -> None:
        own = [pid for pid in pids if processes.is_descendant(pid, self.supervisor_pid)]
        processes.send_signal(own, number)

    def kill_together(self, pids: Iterable[int]) -> None:
        own = [pid for pid in pids if processes.is_descendant(pid, self.supervisor_pid)]
        processes.kill_together(own)

    def tree(self, name: str) -> list[int]:
        return [
            one
            for pid in self.pids(name)
            for one in [pid, *processes.descendants_of(pid)]
        ]

    # Databases and commands

    def connect(self, port: int = PRIMARY, database: str = "groundswell") -> Any:
        """As the superuser, past pgbouncer; each statement on its own."""
        connection = psycopg2.connect(
            host=str(self.run),
            port=port,
            user="postgres",
            dbname=database,
            connect_timeout=5,
        )
        connection.autocommit = True
        return connection

    def ask(self, question: str, *, port: int = PRIMARY) -> Any:
        connection = self.connect(port)
        try:
            with connection.cursor() as cursor:
                cursor.execute(question)
                found = cursor.fetchone() if cursor.description else None
                return found[0] if found else None
        finally:
            connection.close()

    def manage(self, *arguments: str) -> str:
        return output_of(
            [PYTHON, ROOT / "manage.py", *arguments],
            failing=f"manage.py {arguments[0]} failed",
            env={**os.environ, **environment_of(self.folder, "manage")},
        )


def _full(program: dict[str, Any]) -> str:
    return f"{program['group']}:{program['name']}"
