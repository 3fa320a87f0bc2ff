"""Prepare `provisioning/run cluster_fleet`, and start it in namespaces of its own."""

from __future__ import annotations

import argparse
from pathlib import Path

from provisioning.commands import command_parser
from provisioning.prove.citus.build import build_citus, find_archive
from provisioning.prove.failovers.start import install_programs
from provisioning.prove.namespaces import run_in_namespaces

DESCRIPTION = """\
Builds a fleet with a Citus cluster from the example inventories, in network
namespaces of this machine: coordinator and two worker nodes with standbys under
Patroni, and a web host, with TLS and the firewall. Distributes the tables, kills the
primary of a worker node and of the coordinator while simulated respondents save
pages, and compares what was acknowledged with what is stored.
"""
EPILOG = """\
The last line is one JSON object. Exit status: 0 if every host took over, no
acknowledged save was lost or changed, and every save succeeded again; 1 otherwise.
"""
MODULE = "provisioning.prove.citus.fleet_drill"


def main() -> int:
    options = arguments()
    build_citus(find_archive(options.citus))
    return run_in_namespaces(MODULE, options, install=install_programs)


def arguments(command: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(
        DESCRIPTION, EPILOG, rate=(20, "page saves a second to offer")
    )
    add = parser.add_argument
    archive = "archive of Citus's source (vendor beside this checkout)"
    add("--citus", type=Path, help=archive)
    becomes = "begin as a fleet with one database that has answers already"
    add("--from-fleet", action="store_true", help=becomes)
    add("--seed", type=int, metavar="S", help="repeat the draws of an earlier run")
    folder = "where the servers' data lie during the run (/tmp)"
    add("--folder", type=Path, default=Path("/tmp"), metavar="F", help=folder)  # noqa: S108
    add("--keep", action="store_true", help="keep the servers' logs")
    return parser.parse_args(command)
