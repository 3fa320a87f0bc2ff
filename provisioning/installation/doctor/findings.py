"""What is wrong, as a sentence, and what to do about it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning.commands import reason
from provisioning.installation.stack_folder import addresses_of, is_installed

# People can't answer, or answers are at risk; somebody has to look soon; to consider.
ERROR, WARNING, NOTE = "error", "warning", "note"
# Of a program that is called, in seconds; below the limit of a check.
PATIENCE = 8


@dataclass(frozen=True, slots=True)
class Finding:
    """`name` is the same in each release, as "disk.space": for programs."""

    name: str
    severity: str
    sentence: str
    action: str


@dataclass(frozen=True, slots=True)
class Server:
    """An installed server, or a stack; nothing of it has to run."""

    home: Path
    is_installed: bool
    # As `provisioning/install` keeps them; empty for a stack.
    options: Mapping[str, Any]
    has_replica: bool
    has_queue: bool

    @classmethod
    def at(cls, home: Path) -> Server:
        options, addresses = {}, {}
        # An installation that was interrupted has neither; then it is known at least
        # what else is wrong.
        with suppress(OSError, ValueError):
            options = json.loads((home / "installation.json").read_text())
        with suppress(OSError, ValueError):
            addresses = addresses_of(home)
        return cls(
            home=home,
            is_installed=is_installed(home),
            options=options,
            has_replica=bool(addresses.get("has_replica", True)),
            has_queue=(home / "etc" / "rabbitmq").exists(),
        )

    @property
    def command(self) -> str:
        return (
            f"sudo {self.home}/current/provisioning"
            if self.is_installed
            else ("provisioning")
        )


class Unavailable(Exception):
    """What a check reads is away, and another check says so."""


# What it read, as JSON has it; any check may be called without a machine.
Facts = dict[str, Any]
Read = Callable[[Server], Facts]
Judge = Callable[[Server, Facts], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    # Changes nothing, and may fail or hang.
    read: Read
    judge: Judge
    # Not for a stack, which serves loopback.
    for_installed: bool = False


def call(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    input_text: str = "",
    user: str | None = None,
) -> tuple[int, str]:
    """Return the status of a program, and what it printed; 127 where it is missing."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            input=input_text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            cwd="/",
            env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
            # Without any of root's other groups.
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
    except FileNotFoundError:
        return 127, f"{command[0]} is missing"
    except subprocess.TimeoutExpired:
        return 124, f"{Path(command[0]).name} does not answer within {PATIENCE} s"
    if done.returncode:
        return done.returncode, reason(done.stderr or done.stdout)
    return 0, done.stdout


def size(number: float) -> str:
    """Return "1.2 GB"."""
    for unit in ("bytes", "KB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def age(seconds: float) -> str:
    """Return "3 days", in the largest unit of which there are two."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if abs(seconds) >= 2 * length:
            return f"{abs(seconds) / length:.0f} {unit}"
    return f"{abs(seconds):.0f} seconds"
