"""Prepare the environment of `provisioning/faults`, and start it in it."""

from __future__ import annotations

import os
import subprocess
import sys

from provisioning.commands import run_command
from provisioning.environment import PRODUCTION, PYTHON, STACK, prepare_environment
from provisioning.fault_injection.arguments import FAULT_DESCRIPTIONS, arguments
from provisioning.fault_injection.disk_full import MARK

OWN_MOUNTS = ("unshare", "--mount", "--propagation=private")


def main() -> int:
    if arguments().list:
        for name, description in FAULT_DESCRIPTIONS.items():
            print(f"{name:<20} {description}")
        return 0
    prepare_environment(PRODUCTION, STACK)
    command = [str(PYTHON), "-m", "provisioning.fault_injection", *sys.argv[1:]]
    try:
        probe = subprocess.run([*OWN_MOUNTS, "true"], capture_output=True)
        may_mount = probe.returncode == 0
    except FileNotFoundError:
        may_mount = False
    if may_mount:
        os.environ[MARK] = "yes"
        command = [*OWN_MOUNTS, *command]
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    sys.exit(run_command("provisioning/faults", main))
