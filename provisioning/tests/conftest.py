"""Checkouts to run the commands in, apart from the one under test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioning.commands import ROOT
from provisioning.installation.environment import PRODUCTION, STACK, TESTS, stamp_of
from settings.tests.patience import patience

# Holds 40 MB, which its child shares.
PARENT = """
import os, sys, time
held = bytearray(os.urandom(40 * 2**20))
if os.fork():
    print("ready", flush=True)
time.sleep(60)
"""
# Compiled modules are copied, which would take 5 s of each first command. Without
# those of tests, which pytest names after itself.
LEFT_OUT = shutil.ignore_patterns(".*", "*-pytest-*.pyc", "collected")


@pytest.fixture
def bare_checkout(tmp_path: Path) -> Path:
    """As cloned: without `.venv`. Its path has a space in it."""
    return copied(tmp_path / "a checkout")


@pytest.fixture
def checkout(bare_checkout: Path) -> Path:
    return equipped(bare_checkout)


def copied(folder: Path) -> Path:
    return shutil.copytree(ROOT, folder, ignore=LEFT_OUT)


def equipped(checkout: Path) -> Path:
    """With a complete `.venv` and the help site, borrowed from this checkout."""
    venv = checkout / ".venv"
    (venv / "installed").mkdir(parents=True)
    for borrowed in ("bin", "lib"):
        (venv / borrowed).symlink_to(Path(sys.prefix) / borrowed)
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", venv)
    for requirements in (PRODUCTION, TESTS, STACK):
        (venv / "installed" / stamp_of(requirements).name).touch()
    # Built from the same sources; a command would build it again.
    if (ROOT / ".help" / "digest").exists():
        shutil.copytree(ROOT / ".help", checkout / ".help")
    return checkout


def environment(**changes: str) -> dict[str, str]:
    """This process's, without what would lead the commands elsewhere."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GROUNDSWELL_", "PIP_", "DJANGO_"))
    }
    return {**inherited, **changes}


def run(
    checkout: Path, *command: str, seconds: float = 120, **changes: str
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [checkout / "provisioning" / command[0], *command[1:]],
        cwd="/",
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience(seconds),
    )


@pytest.fixture
def parent() -> Iterator[int]:
    """A process that shares its memory with a child."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        os.killpg(process.pid, signal.SIGKILL)
