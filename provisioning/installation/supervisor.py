"""Call the stack's supervisor over its socket, with the standard library only."""

from __future__ import annotations

import http.client
import socket
import xmlrpc.client
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict

from provisioning.commands import Refusal
from provisioning.processes import children_of, memory_mb

# For a machine that is busy with other things too, in seconds.
PATIENCE = 60


class Program(TypedDict):
    """The fields of supervisord's process info that are used here."""

    group: str
    name: str
    # 0 where it does not run.
    pid: int
    statename: str
    start: int
    now: int


class Supervisor:
    """The supervisor of a stack; `run` is the folder of its socket."""

    def __init__(self, folder: Path, *, run: Path | None = None) -> None:
        transport = _Transport()
        transport.path = (run or folder / "run") / "supervisor.sock"
        # Its methods: http://supervisord.org/api.html
        proxy = xmlrpc.client.ServerProxy("http://supervisor", transport=transport)
        self.calls: Any = proxy.supervisor
        self.close = transport.close

    def is_running(self) -> bool:
        try:
            self.calls.getPID()
        except OSError:
            return False
        return True

    def refuse_unless_running(self) -> None:
        if not self.is_running():
            raise Refusal("Nothing is running; start it with provisioning/stack up")

    def programs(self, name: str = "") -> list[Program]:
        """Return all programs, or those of this group or name."""
        programs: list[Program] = self.calls.getAllProcessInfo()
        return [each for each in programs if name in ("", each["group"], each["name"])]

    def pids(self, name: str) -> list[int]:
        return [program["pid"] for program in self.programs(name) if program["pid"]]

    def not_running(self) -> list[str]:
        programs = self.programs()
        return [each["name"] for each in programs if each["statename"] != "RUNNING"]


class _Transport(xmlrpc.client.Transport):
    """XML-RPC over a Unix socket."""

    path: Path

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        connection = self._connection[1]
        if connection is None or connection.sock is None:
            connection = http.client.HTTPConnection("supervisor")
            # Kept first, because the library closes it after a failure.
            self._connection = host, connection
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(self.path))
        return connection


def workers_of(programs: Iterable[Program], pool: str) -> dict[int, float]:
    memory = {
        worker: memory_mb(worker)
        for master in programs
        if master["group"] == pool and master["pid"]
        for worker in children_of(master["pid"])
    }
    return {worker: megabytes for worker, megabytes in memory.items() if megabytes}
