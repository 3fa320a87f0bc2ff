"""Find the stack's folder, and what its servers wrote there."""

from __future__ import annotations

import json
import os
import re
import shlex
from contextlib import suppress
from pathlib import Path

from provisioning.commands import ROOT, Refusal

# The longest socket is the supervisor's, while it starts; a path of one ends at
# 107 bytes.
LONGEST = 107 - len("/run/supervisor.sock.12345")
PLAIN = re.compile(r"[\w./+@-]+")
# For root, where other users may not read the checkout.
SYSTEM_FOLDER = Path("/var/lib/groundswell")
# Of the hosts of a fleet, `home` of group_vars/all/common.yml.
FLEET_FOLDER = Path("/srv/groundswell")


def stack_folder(given: str | None = None) -> Path:
    """Return the folder that is given, or in GROUNDSWELL_STACK, or `.stack`.

    Of an installed server, and of a fleet's host, that of its servers.
    Where root starts the servers they run as a user of their own, who has to
    reach the folder.
    """
    given = given or os.environ.get("GROUNDSWELL_STACK")
    served = installed_folder() or fleet_folder()
    folder = Path(given).absolute() if given else served or ROOT / ".stack"
    if os.geteuid() == 0 and not is_readable_by_all(folder.parent):
        if given:
            raise Refusal(
                f"{folder} is inside a folder that the servers' user may not enter;"
                " let GROUNDSWELL_STACK name another one"
            )
        folder = SYSTEM_FOLDER
    for path in (folder, ROOT):
        if not PLAIN.fullmatch(str(path)):
            raise Refusal(
                f"{path} has a space or a sign in it that the servers'"
                " configurations can't name"
            )
    if len(os.fsencode(folder)) > LONGEST:
        raise Refusal(
            f"{folder} is too long for the paths of sockets; let GROUNDSWELL_STACK"
            f" name a folder of at most {LONGEST} bytes"
        )
    return folder


def installed_folder() -> Path | None:
    """Return the folder of `provisioning/install` if this code is a release of it."""
    home = ROOT.parent.parent
    is_release = ROOT.parent.name == "releases" and is_installed(home)
    return home if is_release else None


def fleet_folder() -> Path | None:
    """Return the folder of a fleet's host if its programs run this code."""
    return FLEET_FOLDER if checkout_of_fleet(FLEET_FOLDER) == str(ROOT) else None


def checkout_of_fleet(folder: Path) -> str:
    """Return where a fleet's host has its code; "" for any other folder."""
    with suppress(OSError, ValueError):
        return addresses_of(folder).get("checkout_of_fleet", "")
    return ""


def is_installed(folder: Path) -> bool:
    return (folder / "installation.json").exists()


def is_readable_by_all(path: Path) -> bool:
    """Return whether any user may enter this folder, or read this file."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    needed = 0o1 if path.is_dir() else 0o4
    return bool(path.stat().st_mode & needed) and all(
        parent.stat().st_mode & 0o1 for parent in path.parents
    )


def environment_of(folder: Path, program: str) -> dict[str, str]:
    """Return the environment variables of `taking`, `console`, `worker` or `manage`."""
    path = folder / "etc" / "app" / f"{program}.env"
    if not path.exists():
        raise Refusal("There is no stack; start one with provisioning/stack up")
    lines = shlex.split(path.read_text(), comments=True)
    return dict(line.split("=", 1) for line in lines)


def addresses_of(folder: Path) -> dict[str, str]:
    addresses: dict[str, str] = json.loads((folder / "etc/stack.json").read_text())
    return addresses
