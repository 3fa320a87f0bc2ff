"""Start a stack for one command, and remove it afterwards."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provisioning.commands import ROOT, output_of, step


@contextmanager
def temporary_stack(folder: Path, *, port: int, keep: bool = False) -> Iterator[Path]:
    """Start a stack in a subfolder of `folder`, which is deleted with it."""
    path = folder / "stack"
    command = str(ROOT / "provisioning" / "stack")
    environment = {**os.environ, "GROUNDSWELL_STACK": str(path)}
    # The guard removes the stack when this command ends, even if it is killed.
    remove = 'read -r _; "$0" down >/dev/null 2>&1 && rm -rf "$1"'
    guard = subprocess.Popen(
        ["sh", "-c", "exit 0" if keep else remove, command, folder],
        stdin=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    try:
        with step("Starting a stack"):
            output_of(
                [command, "up", f"--port={port}"],
                failing="The stack does not start",
                env=environment,
            )
        yield path
    finally:
        assert guard.stdin is not None  # noqa: S101
        guard.stdin.close()
        if not keep:
            with step("Removing the stack"):
                guard.wait()
