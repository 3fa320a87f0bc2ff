"""Write the files of hosts with the playbook, without starting anything."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

from provisioning.installation.playbook import (
    ANSIBLE,
    THIS_MACHINE,
    ansible_environment,
    playbook_command,
)

EXAMPLE_FLEET = f"--inventory={ANSIBLE / 'inventories' / 'fleet.example'}"


def play(folder: Path, inventory: str, *options: str, **variables: Any) -> None:
    done = subprocess.run(
        playbook_command(inventory, *options, variables=variables),
        env=ansible_environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def render_fleet(folder: Path, *options: str, **variables: Any) -> None:
    """Write the files of each host of the example into a folder with its name."""
    defaults = {
        "files_only": True,
        "home": f"{folder}/{{{{ inventory_hostname }}}}",
        "files_folder": f"{folder}/shared",
        "secrets": str(folder / "secrets"),
        "server_user": "",
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_python_interpreter": sys.executable,
    }
    # One host after another: reading a password fails if other hosts hold its lock
    # for seven seconds.
    options = ("--tags=files", "--forks=1", *options)
    play(folder, EXAMPLE_FLEET, *options, **{**defaults, **variables})


def render_web(home: Path, **variables: Any) -> None:
    """Write the files of nginx and the application on this machine."""
    defaults = {
        "home": str(home),
        "files_only": True,
        "server_user": "",
        "app_user": pwd.getpwuid(os.geteuid()).pw_name,
        "time_zone": "America/Chicago",
    }
    play(
        home.parent,
        THIS_MACHINE,
        "--tags=files",
        "--skip-tags=primary,replica,backup,cache,queue,pgbouncer,worker",
        **{**defaults, **variables},
    )
