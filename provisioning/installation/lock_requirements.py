"""Write provisioning/installation/locked/, from which packages are installed.

For each line of a requirements file, the SHA-256 of all files of this version, for
every platform. Run it after changing a version, and look at the difference: a digest
that changed without its version is an alarm.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from provisioning.commands import ROOT, command_parser, output_of, step
from provisioning.installation.environment import PRODUCTION, STACK, TESTS, lock_of

# Not in requirements.txt: it runs in an environment of its own, and only here.
PIP_TOOLS = "pip-tools==7.6.2"


def main() -> int:
    command_parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with step(f"Installing {PIP_TOOLS}"):
            output_of([sys.executable, "-m", "venv", folder], failing="No venv")
            programs = Path(folder, "bin")
            output_of(
                [programs / "pip", "install", "--quiet", PIP_TOOLS],
                failing=f"{PIP_TOOLS} can't be installed",
            )
        for requirements in (PRODUCTION, TESTS, STACK):
            with step(f"Locking {requirements.name}"):
                lock(programs / "pip-compile", requirements)
    return 0


def lock(pip_compile: Path, requirements: Path) -> None:
    # Which registry or folder this machine uses is its own matter.
    options = ("index-url", "find-links", "trusted-host")
    output_of(
        [
            *(pip_compile, "--quiet", "--generate-hashes", "--no-reuse-hashes"),
            *("--strip-extras", "--no-annotate"),
            *(f"--no-emit-{name}" for name in options),
            *("--constraint", PRODUCTION.name, "--output-file", lock_of(requirements)),
            requirements.relative_to(ROOT),
        ],
        failing=f"{requirements.name} can't be locked",
        env={**os.environ, "CUSTOM_COMPILE_COMMAND": "provisioning/lock"},
    )
