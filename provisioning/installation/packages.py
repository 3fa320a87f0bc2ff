"""Find out which of Debian's packages are missing.

The roles of provisioning/ansible list them, for this machine as for a fleet:
one package in a line, then the program or file that shows it is installed.
"""

from __future__ import annotations

import os
import shutil
from glob import glob

from provisioning.commands import ROOT

ROLES = ROOT / "provisioning" / "ansible" / "roles"
# Of a machine that runs everything; load comes from another one.
STACK_ROLES = ("primary", "replica", "cache", "queue", "web", "worker")


def missing_packages(*, browser: bool = False) -> list[str]:
    """Return the stack's missing packages; with `browser`, also the tests'."""
    signs = {"chromium": "chromium"} if browser else {}
    for role in STACK_ROLES:
        for line in (ROLES / role / "packages.txt").read_text().splitlines():
            package, sign = line.split()
            signs[package] = sign
    return [
        package
        for package, sign in signs.items()
        if not (glob(sign) if sign.startswith("/") else path_of_program(sign))
    ]


def path_of_program(name: str) -> str:
    """Return the path of a program, or "" where it is missing."""
    # Debian keeps servers in folders outside an ordinary user's PATH.
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/bin") or ""
