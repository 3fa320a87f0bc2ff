"""Debian's packages of each kind of server, and whether they are there.

The roles of provisioning/ansible list them: a package a line, and after it the
program or file that shows it is installed. A fleet's hosts install the same.
"""

from __future__ import annotations

import os
import shutil
from glob import glob
from pathlib import Path

from provisioning.commands import ROOT, Refusal

ROLES = ROOT / "provisioning" / "ansible" / "roles"
# Of a machine that runs everything; the load comes from somewhere else.
ALL = ("primary", "replica", "cache", "queue", "web", "worker")


def missing_packages() -> list[str]:
    listed = {}
    for role in ALL:
        for line in (ROLES / role / "packages.txt").read_text().splitlines():
            package, sign = line.split()
            listed[package] = sign
    return [package for package, sign in listed.items() if not _is_there(sign)]


def _is_there(sign: str) -> bool:
    return bool(glob(sign) if sign.startswith("/") else program(sign))


def program(name: str) -> str:
    """Its path, or an empty one where it is missing."""
    # Debian keeps servers where an ordinary user's PATH does not look.
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/bin") or ""


def postgresql_programs() -> Path:
    """Where PostgreSQL's programs are: 15 if possible, otherwise the next one."""
    installed = [
        folder
        for folder in Path("/usr/lib/postgresql").glob("*/bin")
        if (folder / "postgres").exists() and int(folder.parent.name) >= 15
    ]
    if not installed:
        raise Refusal("PostgreSQL 15 or newer is missing (apt-get install postgresql)")
    return min(installed, key=lambda folder: int(folder.parent.name))
