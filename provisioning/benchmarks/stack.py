"""The stack that runs on this machine, as its measurers see it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import ROOT, Refusal, output_of, reason
from provisioning.installation.home import environment_of, stack_home
from provisioning.load.target import Target, target_of

DATABASE = "groundswell"
# The taking pool's, at pgbouncer: a database's name and a user.
POOL = ("taking", "taking")


@dataclass(frozen=True, slots=True)
class Stack:
    home: Path
    target: Target
    checkout: Path = ROOT

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def python(self) -> Path:
        return self.checkout / ".venv" / "bin" / "python"

    def manage(self, *arguments: str) -> str:
        """A management command, as the owner of the tables."""
        return output_of(
            [self.python, self.checkout / "manage.py", *arguments],
            failing=f"manage.py {arguments[0]} failed",
            env={**os.environ, **environment_of(self.home, "manage")},
        )

    def sql(self, text: str, *, failing: str = "PostgreSQL refuses") -> list[list[str]]:
        """Rows of a statement, as the superuser on the primary itself."""
        done = subprocess.run(
            ["psql", "--no-psqlrc", "--quiet", "--no-align", "--tuples-only"]
            + ["--field-separator=\t", "-v", "ON_ERROR_STOP=1", f"--host={self.run}"]
            + ["--port=5432", "--username=postgres", f"--dbname={DATABASE}"],
            input=text,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise Refusal(f"{failing}: {reason(done.stderr)}")
        return [line.split("\t") for line in done.stdout.splitlines() if line]


def running_stack(
    *, home: Path | None = None, address: str = "", checkout: Path = ROOT
) -> Stack:
    """Raises Refusal where it does not run."""
    home = (home or stack_home()).absolute()
    told = home / "etc" / "stack.json"
    if not told.exists():
        raise Refusal(f"There is no stack in {home}; start one: provisioning/stack up")
    address = address or json.loads(told.read_text())["address"].rstrip("/")
    target = target_of(address)
    with socket.socket(target.family, socket.SOCK_STREAM) as probe:
        if probe.connect_ex(target.address):
            raise Refusal(
                f"Nobody answers at {address}; start it: provisioning/stack up"
            )
    return Stack(home, target, checkout)
