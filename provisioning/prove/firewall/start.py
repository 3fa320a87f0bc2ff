"""Prepare `provisioning/run measure_firewall`, and start it in its own namespaces."""

from __future__ import annotations

import argparse

from provisioning.commands import command_parser
from provisioning.installation.environment import install_missing_packages
from provisioning.prove.namespaces import run_in_namespaces

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
    return run_in_namespaces(MODULE, arguments(), install=install_programs)


def install_programs() -> None:
    install_missing_packages()
    install_missing_packages("firewall")


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
