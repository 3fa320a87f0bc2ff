"""What figures were measured on: without it they say nothing."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

from provisioning.benchmarks.stack import Stack

VERSIONS = {
    "nginx": ["/usr/sbin/nginx", "-v"],
    "pgbouncer": ["/usr/sbin/pgbouncer", "--version"],
    "redis": ["/usr/bin/redis-server", "--version"],
    "memcached": ["/usr/bin/memcached", "--version"],
}
NUMBER = re.compile(r"\d+(?:\.\d+)+")


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"model name\s*: (.*)", text)
    return found[1].strip() if found else platform.machine()


def memory_gb() -> float:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return round(pages / 2**30, 1)


def described(stack: Stack) -> dict[str, object]:
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "memory_gb": memory_gb(),
        "kernel": platform.release(),
        "revision": revision(stack.checkout),
        "versions": {
            "python": _number([str(stack.python), "--version"]),
            "postgresql": stack.sql("SHOW server_version")[0][0].split()[0],
            **{name: _number(command) for name, command in VERSIONS.items()},
        },
        "load_average_before": round(os.getloadavg()[0], 2),
    }


def revision(checkout: Path) -> str:
    """Of the checkout; with a plus where its files differ from it."""
    git = ["git", "-C", str(checkout)]
    name = _output([*git, "rev-parse", "--short", "HEAD"]).strip()
    changed = _output([*git, "status", "--porcelain", "--untracked-files=no"])
    return f"{name}+" if changed else name


def _number(command: list[str]) -> str:
    found = NUMBER.search(_output(command))
    return found[0] if found else ""


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr if not done.returncode else ""
