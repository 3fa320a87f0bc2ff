"""Prepare `provisioning/run drill_fleet`, and start it in namespaces of its own."""

from __future__ import annotations

import argparse
from pathlib import Path

from provisioning.commands import command_parser
from provisioning.installation.environment import install_packages, path_of_program
from provisioning.prove.installing.drill import PACKAGES
from provisioning.prove.installing.machine import PROGRAMS
from provisioning.prove.namespaces import OF_PROCESSES, run_in_namespaces

DESCRIPTION = """\
Sets up a whole fleet on this machine, from an empty inventory to answered surveys: each
host is a fresh Debian with systemd in a network of its own, and the playbook reaches it
by SSH. The firewall and TLS are on. Then a host of each kind is lost while people
answer, comes back, and all receipts are compared with the database. Needs root.
"""
EPILOG = """\
docs/decisions/0182-whole-fleet-drill.md says what is counted, and what only real
machines show. The last line is one JSON object. Exit status: 0 if no acknowledged
answer was lost, all hosts came back, and the firewall kept its doors closed.
"""
# The names of the networks end with the process namespace, too.
NAMESPACES = (
    *OF_PROCESSES,
    *(
        "sh",
        "-c",
        'mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && "$@"; exit $?',
    ),
    "sh",
)
MODULE = "provisioning.prove.fleet.drill"
KINDS = ("web", "worker", "queue", "cache", "standby", "primary", "balancer")


def main() -> int:
    return run_in_namespaces(
        MODULE, arguments(), install=install_programs, namespaces=NAMESPACES
    )


def install_programs() -> None:
    programs = (*PROGRAMS, "nft")
    packages = {**PACKAGES, "nft": "nftables"}
    if missing := [packages.get(it, it) for it in programs if not path_of_program(it)]:
        install_packages(missing)


def arguments(command: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(
        DESCRIPTION, EPILOG, people=(2000, "respondents of the survey")
    )
    add = parser.add_argument
    add("--suite", default="bookworm", help="Debian's: bookworm or trixie (bookworm)")
    only = "lose this kind of host only; may be given several times"
    add("--only", action="append", choices=KINDS, metavar="KIND", help=only)
    add("--seed", type=int, metavar="S", help="repeat the draws of an earlier run")
    folder = "where the hosts' disks lie during the run (/var/tmp)"
    add("--folder", type=Path, default=Path("/var/tmp"), metavar="F", help=folder)  # noqa: S108
    add("--keep", action="store_true", help="keep the hosts' disks and all logs")
    return parser.parse_args(command)
