"""`provisioning/faults`: makes the environment, and starts the checker in it."""

from __future__ import annotations

import os
import subprocess
import sys

from provisioning.commands import run_command
from provisioning.environment import PRODUCTION, PYTHON, STACK, prepare_environment
from provisioning.fault_injection.arguments import KNOWN, arguments

# Set for a checker that may mount what only it and its children see.
MARK = "GROUNDSWELL_OWN_MOUNTS"
APART = ("unshare", "--mount", "--propagation=private")


def main() -> int:
    if arguments().list:
        for name, describes in KNOWN.items():
            print(f"{name:<20} {describes}")
        return 0
    prepare_environment(PRODUCTION, STACK)
    command = [str(PYTHON), "-m", "provisioning.fault_injection", *sys.argv[1:]]
    if _may_mount():
        os.environ[MARK] = "yes"
        command = [*APART, *command]
    os.execvp(command[0], command)  # noqa: S606


def _may_mount() -> bool:
    try:
        return not subprocess.run([*APART, "true"], capture_output=True).returncode
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(run_command("provisioning/faults", main))
