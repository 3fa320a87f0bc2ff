"""Prepare `provisioning/run failovers`, and start it in namespaces of its own."""

from __future__ import annotations

import argparse
from pathlib import Path

from provisioning.commands import command_parser
from provisioning.installation.environment import install_missing_packages
from provisioning.prove.failovers.faults import FAULTS
from provisioning.prove.namespaces import run_in_namespaces

DESCRIPTION = """\
Runs the database of a fleet in network namespaces of this machine: three hosts
with PostgreSQL, Patroni and etcd, and a web host with pgbouncer and HAProxy,
configured by the fleet's own Ansible roles. Makes the primary fail again and
again while simulated respondents save pages, and then compares what was
acknowledged with what is stored.
"""
EPILOG = """\
docs/decisions/0106-what-the-failover-drill-does.md lists the faults and what is
counted.

The last line is one JSON object. Exit status: 0 if the promise held, 1 if not:
no split, no saves lost (under A2), and a median of at most 15 seconds until
saves succeed again. With --control split: 0 if the split was found.
"""
MODULE = "provisioning.prove.failovers.__main__"
PACKAGES = ("failover", "haproxy", "worker", "firewall", "power_loss")


def main() -> int:
    options = arguments()
    if options.list:
        for fault in FAULTS:
            print(f"{fault.name:<12} {fault.description}")
        return 0
    return run_in_namespaces(MODULE, options, install=install_programs)


def install_programs() -> None:
    install_missing_packages(*PACKAGES)


def arguments(command: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(
        DESCRIPTION,
        EPILOG,
        count=(10, "changes of the primary to run until"),
        rate=(60, "page saves a second to offer"),
    )
    add = parser.add_argument
    promise = "A2: commits wait for a standby; A1: for the primary alone (A2)"
    add("--promise", choices=["A1", "A2"], default="A2", help=promise)
    only = "inject this fault only; may be given several times"
    names = [fault.name for fault in FAULTS]
    add("--only", action="append", choices=names, metavar="NAME", help=only)
    add("--list", action="store_true", help="list the faults, and stop")
    control = "remove what protects from two primaries: a split has to be found"
    add("--control", choices=["split"], help=control)
    add("--seed", type=int, metavar="S", help="repeat the draws of an earlier run")
    record = "add the result to provisioning/measured/failovers.json"
    add("--record", action="store_true", help=record)
    folder = "where the servers' data lie during the run (/tmp)"
    add("--folder", type=Path, default=Path("/tmp"), metavar="F", help=folder)  # noqa: S108
    add("--keep", action="store_true", help="keep the servers' logs")
    return parser.parse_args(command)
