"""Describe the machine, the revision and the versions that were measured."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from pathlib import Path

from provisioning.measure.benchmarks.stack import Stack

VERSION_COMMANDS = {
    "nginx": ["/usr/sbin/nginx", "-v"],
    "pgbouncer": ["/usr/sbin/pgbouncer", "--version"],
    "redis": ["/usr/bin/redis-server", "--version"],
    "memcached": ["/usr/bin/memcached", "--version"],
}


def processor() -> str:
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text()
        if model := re.search(r"model name\s*: (.*)", text):
            return model[1].strip()
    return platform.machine()


def describe_machine(stack: Stack) -> dict[str, object]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    commands = {"python": [str(stack.python), "--version"], **VERSION_COMMANDS}
    versions = {name: version_in(_output(it)) for name, it in commands.items()}
    versions["postgresql"] = version_in(stack.sql("SHOW server_version")[0][0])
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30, 1),
        "kernel": platform.release(),
        "revision": revision_of(stack.checkout),
        "versions": versions,
        "load_average_before": round(os.getloadavg()[0], 2),
    }


def revision_of(checkout: Path) -> str:
    """Return the checkout's revision, with a plus where its files differ."""
    git = ["git", "-C", str(checkout)]
    revision = _output([*git, "rev-parse", "--short", "HEAD"]).strip()
    changed = _output([*git, "status", "--porcelain", "--untracked-files=no"])
    return f"{revision}+" if changed else revision


def version_in(text: str) -> str:
    """Return the first number with a dot in it; "" where there is none."""
    number = re.search(r"\d+(?:\.\d+)+", text)
    return number[0] if number else ""


def _output(command: list[str]) -> str:
    """Return what a command prints; "" where it fails or is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout + done.stderr
