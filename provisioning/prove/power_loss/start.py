"""Prepare the environment of `provisioning/run power_loss`, and start it in it."""

from __future__ import annotations

import argparse
import os
import sys

from provisioning.commands import (
    Refusal,
    command_parser,
)
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    install_missing_packages,
    prepare_environment,
)
from provisioning.prove.fault_injection.start import OWN_MOUNTS

DESCRIPTION = """\
Cuts the power under PostgreSQL, many times, while simulated people save pages
by the product's own function. Its data folder is on a disk that records every
write and flush; images are built of the record as power failures at random
instants would leave the disk, and a server is started on each. Everything that
was acknowledged before its instant has to be there. Then the same is done
without the protections of PostgreSQL, one at a time: losses have to be found.
"""

EPILOG = """\
docs/decisions/0105-power-loss-images.md says what this proves. Only root may
run it: it mounts file systems, in a mount namespace of its own.

It records in the folder for temporary files (TMPDIR), and needs 6 GB there.
The last line is one JSON object. Exit status: 0 if nothing is lost, and each
control finds losses; otherwise 1.
"""

MODULE = "provisioning.prove.power_loss.__main__"


def main() -> int:
    arguments()
    if os.geteuid() != 0:
        raise Refusal("Only root may mount file systems")
    prepare_environment(PRODUCTION, STACK)
    install_missing_packages("power_loss")
    command = [*OWN_MOUNTS, str(PYTHON), "-m", "provisioning", MODULE, *sys.argv]
    os.execvp(command[0], command)  # noqa: S606


def arguments(command: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(
        DESCRIPTION,
        EPILOG,
        images=(60, "images with every protection; each control has 20 or a third"),
        seconds=(30.0, "of saves that are recorded; each control has half of it"),
    )
    seed = "repeat the draws of an earlier run"
    parser.add_argument("--seed", type=int, metavar="N", help=seed)
    return parser.parse_args(command)
