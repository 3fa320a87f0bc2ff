"""Prepare `provisioning/run drill_fleet_upgrade`, and start it in its namespaces."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from provisioning.commands import command_parser
from provisioning.installation.debian_roots import prepared_root, run_inside
from provisioning.installation.postgresql import OLDEST, installed_versions
from provisioning.prove.failovers.start import install_programs
from provisioning.prove.namespaces import run_in_namespaces

DESCRIPTION = """\
Upgrades PostgreSQL on all database hosts of a fleet by `upgrade_postgresql.yml`, while
simulated respondents go on saving pages: three hosts with PostgreSQL, Patroni and etcd
and a web host, in network namespaces, configured by the fleet's own roles. Compares
what was acknowledged with what is stored, and what the database held before and after.
Where only one version is installed, it runs in a folder with Debian 13 and both.
"""
EPILOG = """\
The last line is one JSON object. Exit status: 0 if all hosts serve the new version with
the same rows, no acknowledged save was lost or changed, and the control's was; else 1.
"""
MODULE = "provisioning.prove.failovers.upgrade_night"


def main() -> int:
    options = arguments()
    if {OLDEST, options.to} <= {*installed_versions()}:
        return run_in_namespaces(MODULE, options, install=install_programs)
    with prepared_root("trixie", versions=[OLDEST]) as root:
        command = ["provisioning/run", "drill_fleet_upgrade", *sys.argv[1:]]
        # There it installs its programs, and then makes namespaces of its own.
        return run_inside(root, command, alone=False).returncode


def arguments(command: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(
        DESCRIPTION, EPILOG, rate=(20, "page saves a second to offer")
    )
    add = parser.add_argument
    add("--to", type=int, default=17, help=f"from {OLDEST} to this version (17)")
    add("--link", action="store_true", help="link files, as the playbook's option does")
    add("--seed", type=int, metavar="S", help="repeat the draws of an earlier run")
    folder = "where the servers' data lie during the run (/tmp)"
    add("--folder", type=Path, default=Path("/tmp"), metavar="F", help=folder)  # noqa: S108
    add("--keep", action="store_true", help="keep the servers' logs")
    return parser.parse_args(command)
