"""Find the time zone that this machine's owner has chosen."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from provisioning.commands import Refusal

LOCALTIME = Path("/etc/localtime")


def zone_of_machine() -> str:
    """Return its name, by the link of /etc/localtime or by systemd."""
    # An older name, such as US/Central, leads on to that of the city.
    _, folder, name = str(LOCALTIME.resolve()).partition("/zoneinfo/")
    if folder:
        return name
    with suppress(OSError):
        shown = subprocess.run(
            ["timedatectl", "show", "--property=Timezone", "--value"],
            capture_output=True,
            text=True,
        )
        if name := shown.stdout.strip():
            return name
    raise Refusal(
        "This machine names no time zone; add --time-zone, such as"
        " --time-zone=America/Chicago"
    )
