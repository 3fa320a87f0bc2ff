"""Prepare `provisioning/run measure_firewall`, and start it in its own namespaces."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from provisioning.commands import Refusal, command_parser, scratch_folder
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    install_missing_packages,
    prepare_environment,
)
from provisioning.processes import start_process
from provisioning.prove.failovers.start import NAMESPACES

DESCRIPTION = """\
Measures a stack with the fleet's firewall and without it, in turns: page saves and
new connections a second, also while 6,000 connections of one address idle. Then
fills the kernel's table of connections and counts who still gets through, with
inner ports that are tracked, as a control, and as the role has it. The servers
find one another by TCP, as on a fleet, in a network namespace of this command.
"""
EPILOG = """\
The last line is one JSON object. Exit status: 0 if a full table stops neither open
pages nor servers, stops servers in the control, and saves with the firewall are at
least nine tenths of those without it.
"""
MODULE = "provisioning.prove.firewall.__main__"


def main() -> int:
    options = arguments()
    if os.geteuid() != 0:
        raise Refusal("Only root can make network namespaces; try sudo")
    prepare_environment(PRODUCTION, STACK)
    # Later there is no network to fetch them from.
    install_missing_packages()
    install_missing_packages("firewall")
    command = [*NAMESPACES, str(PYTHON), "-m", "provisioning", MODULE]
    with scratch_folder(keep=options.keep) as folder:
        process = start_process(
            [*command, *sys.argv, f"--folder={folder}"], parent_signal=signal.SIGKILL
        )
        try:
            return process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()


def arguments(command: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(
        DESCRIPTION,
        EPILOG,
        rounds=(3, "in which each set of rules is measured once"),
        seconds=(4.0, "of each part of a round"),
        idle=(6_000, "connections of one address"),
    )
    add = parser.add_argument
    add("--keep", action="store_true", help="keep the servers' logs")
    add("--folder", help=argparse.SUPPRESS)
    return parser.parse_args(command)
