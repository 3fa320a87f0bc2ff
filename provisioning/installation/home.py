"""Where a stack lives, and what it is asked there. Standard library only."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import socket
import xmlrpc.client
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, Refusal
from provisioning.processes import children_of, memory_mb

# The longest socket is run/.s.PGSQL.6432; a path of one ends at 107 bytes.
LONGEST = 107 - len("/run/supervisor.sock.12345")
PLAIN = re.compile(r"[\w./+@-]+")
# For a root whose checkout nobody else may read.
SYSTEM_HOME = Path("/var/lib/groundswell")
# Patience with a machine that does other things as well, in seconds.
PATIENCE = 60


def stack_home() -> Path:
    """`.stack` in the checkout, or the folder that GROUNDSWELL_STACK names.

    The servers run as a user of their own where root starts them, and that
    user has to reach it.
    """
    given = os.environ.get("GROUNDSWELL_STACK")
    home = Path(given).absolute() if given else ROOT / ".stack"
    if os.geteuid() == 0 and not is_open(home.parent):
        if given:
            raise Refusal(
                f"{home} is inside a folder that the servers' user may not enter;"
                " let GROUNDSWELL_STACK name another one"
            )
        home = SYSTEM_HOME
    for path in (home, ROOT):
        if not PLAIN.fullmatch(str(path)):
            raise Refusal(
                f"{path} has a space or a sign in it that the servers'"
                " configurations can't name"
            )
    if len(os.fsencode(home)) > LONGEST:
        raise Refusal(
            f"{home} is too long for the paths of sockets; let GROUNDSWELL_STACK"
            f" name a folder of at most {LONGEST} bytes"
        )
    return home


def is_open(path: Path) -> bool:
    """Whether any user may enter this folder, or read this file."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    needed = 0o1 if path.is_dir() else 0o4
    return bool(path.stat().st_mode & needed) and all(
        parent.stat().st_mode & 0o1 for parent in path.parents
    )


def environment_of(home: Path, program: str) -> dict[str, str]:
    """The variables of `taking`, `console`, `worker` or `manage`."""
    written = home / "etc" / "app" / f"{program}.env"
    if not written.exists():
        raise Refusal("There is no stack; start one with provisioning/stack up")
    lines = shlex.split(written.read_text(), comments=True)
    return dict(line.split("=", 1) for line in lines)


def addresses_of(home: Path) -> dict[str, Any]:
    """`address` for people, `monitoring` for those who watch it."""
    return json.loads((home / "etc" / "stack.json").read_text())


class Supervisor:
    """The supervisor of a home, asked by its socket."""

    def __init__(self, home: Path, *, run: Path | None = None) -> None:
        path = (run or home / "run") / "supervisor.sock"
        self._transport = _Transport(path)
        proxy = xmlrpc.client.ServerProxy("http://x", transport=self._transport)
        # Its methods: http://supervisord.org/api.html
        self.calls: Any = proxy.supervisor

    def close(self) -> None:
        self._transport.close()

    def is_running(self) -> bool:
        try:
            self.calls.getPID()
        except OSError:
            return False
        return True

    def programs(self) -> list[dict[str, Any]]:
        return self.calls.getAllProcessInfo()


def workers_of(programs: Iterable[Mapping[str, Any]], pool: str) -> dict[int, float]:
    """Return the workers of all of a pool's gunicorns, and their memory in MB."""
    masters = [each["pid"] for each in programs if each["group"] == pool]
    memory = {
        worker: memory_mb(worker)
        for master in masters
        if master
        for worker in children_of(master)
    }
    return {worker: megabytes for worker, megabytes in memory.items() if megabytes}


class _Transport(xmlrpc.client.Transport):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        # Where the library keeps it, so that it is used again and closed.
        if self._connection[1] is None:
            self._connection = host, _Connection(self.path)
        assert self._connection[1] is not None  # noqa: S101
        return self._connection[1]


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("supervisor")
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.connect(str(self.path))
        except OSError:
            self.close()
            raise
