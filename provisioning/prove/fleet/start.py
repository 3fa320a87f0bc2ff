"""Prepare `provisioning/run drill_fleet`, and start it in namespaces of its own."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from provisioning.commands import Refusal, command_parser, scratch_folder
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    install_packages,
    path_of_program,
    prepare_environment,
)
from provisioning.processes import start_process
from provisioning.prove.installing.drill import PACKAGES
from provisioning.prove.installing.machine import PROGRAMS

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
# Everything that is started or mounted ends with the process namespace, also the names
# of the networks. A shell is its first process: it reaps what killed hosts leave.
NAMESPACES = (
    *("unshare", "--mount", "--propagation=private", "--pid"),
    *("--fork", "--kill-child", "--mount-proc"),
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
    options = arguments()
    if os.geteuid() != 0:
        raise Refusal("Only root can make network namespaces; try sudo")
    programs = (*PROGRAMS, "nft")
    packages = {**PACKAGES, "nft": "nftables"}
    if missing := [packages.get(it, it) for it in programs if not path_of_program(it)]:
        install_packages(missing)
    prepare_environment(PRODUCTION, STACK)
    command = [*NAMESPACES, str(PYTHON), "-m", "provisioning", MODULE]
    with scratch_folder(options.folder, keep=options.keep) as folder:
        process = start_process(
            [*command, *sys.argv, f"--folder={folder}"],
            parent_signal=signal.SIGKILL,
        )
        try:
            return process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()


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
