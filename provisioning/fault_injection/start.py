"""Prepare the environment of `provisioning/faults`, and start it in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from provisioning.commands import run_command
from provisioning.environment import PRODUCTION, PYTHON, STACK, prepare_environment
from provisioning.fault_injection.arguments import arguments
from provisioning.fault_injection.disk_full import MARK
from provisioning.fault_injection.faults import FAULTS

OWN_MOUNTS = ("unshare", "--mount", "--propagation=private")


def main() -> int:
    if arguments().list:
        for fault in FAULTS:
            print(f"{fault.name:<20} {fault.description}")
        return 0
    prepare_environment(PRODUCTION, STACK)
    command = [str(PYTHON), "-m", "provisioning.fault_injection", *sys.argv[1:]]
    probe = [*OWN_MOUNTS, "true"]
    if shutil.which("unshare") and not subprocess.call(
        probe, stderr=subprocess.DEVNULL
    ):
        os.environ[MARK] = "yes"
        command = [*OWN_MOUNTS, *command]
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    sys.exit(run_command("provisioning/faults", main))
