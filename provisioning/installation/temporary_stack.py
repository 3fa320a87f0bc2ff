"""Start a stack for one command, and remove it afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

from provisioning.commands import ROOT, output_of, step
from provisioning.installation.supervisor import PATIENCE, Supervisor
from provisioning.processes import descendants_of, kill_together, wait_until_gone


@contextmanager
def temporary_stack(
    folder: Path, *settings: str, port: int, keep: bool = False
) -> Iterator[Path]:
    """Start a stack in a subfolder of `folder`, which is deleted with it."""
    path = folder / "stack"
    with nullcontext() if keep else _removed_afterwards(folder):
        with step("Starting a stack"):
            output_of(
                [
                    *(ROOT / "provisioning" / "stack", "up", f"--port={port}"),
                    *(f"--set={setting}" for setting in settings),
                ],
                failing="The stack does not start",
                env={**os.environ, "GROUNDSWELL_STACK": str(path)},
            )
        yield path


@contextmanager
def _removed_afterwards(folder: Path) -> Iterator[None]:
    # Its input ends with this command, even if that is killed.
    guard = subprocess.Popen(
        [sys.executable, "-m", "provisioning.installation.temporary_stack", folder],
        stdin=subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        yield
    finally:
        with step("Removing the stack"):
            guard.communicate()


def remove_stack(folder: Path) -> None:
    """Kill all programs of a temporary stack at once, and delete its data."""
    with suppress(OSError), closing(Supervisor(folder / "stack")) as supervisor:
        pid = supervisor.calls.getPID()
        programs = [pid, *descendants_of(pid)]
        kill_together(programs)
        wait_until_gone(programs, seconds=PATIENCE)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.stdin.read()
    remove_stack(Path(sys.argv[1]))
