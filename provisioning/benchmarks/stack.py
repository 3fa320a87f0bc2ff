"""Find the stack that runs on this machine, its database and its commands."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import ROOT, Refusal, output_of
from provisioning.installation.stack_folder import (
    addresses_of,
    environment_of,
    stack_folder,
)
from provisioning.load.target import Target, target_of
from provisioning.postgresql import run_sql

# The taking pool's database and user at pgbouncer.
POOL = ("taking", "taking")


@dataclass(frozen=True, slots=True)
class Stack:
    folder: Path
    target: Target
    checkout: Path = ROOT

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def python(self) -> Path:
        return self.checkout / ".venv" / "bin" / "python"

    @property
    def port(self) -> int:
        """nginx's port; 0 where its address is a Unix socket."""
        return self.target.address[1] if isinstance(self.target.address, tuple) else 0

    def manage(self, *arguments: str) -> str:
        """Run a management command of the stack's checkout, as the tables' owner."""
        return output_of(
            [self.python, self.checkout / "manage.py", *arguments],
            failing=f"manage.py {arguments[0]} failed",
            env={**os.environ, **environment_of(self.folder, "manage")},
        )

    def sql(
        self, statements: str, *, failing: str = "PostgreSQL refuses"
    ) -> list[list[str]]:
        """Return rows from the primary itself, as its superuser."""
        return run_sql(statements, run=self.run, failing=failing)


def running_stack(
    *, folder: Path | None = None, address: str = "", checkout: Path = ROOT
) -> Stack:
    """Return the stack in this folder; raise Refusal if it does not run."""
    folder = (folder or stack_folder()).absolute()
    if not (folder / "etc" / "stack.json").exists():
        raise Refusal(
            f"There is no stack in {folder}; start one: provisioning/stack up"
        )
    address = address or addresses_of(folder)["address"].rstrip("/")
    target = target_of(address)
    with socket.socket(target.family, socket.SOCK_STREAM) as probe:
        if probe.connect_ex(target.address):
            raise Refusal(
                f"Nothing answers at {address}; start it: provisioning/stack up"
            )
    return Stack(folder, target, checkout)
