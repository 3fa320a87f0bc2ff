"""Prepare the environment of `provisioning/faults`, and start it in it."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys

from provisioning.commands import command_parser, port_number
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    install_missing_packages,
    prepare_environment,
)
from provisioning.prove.fault_injection.faults import (
    BY_NAME,
    FAULTS,
    MARK,
    NETWORK,
    NETWORK_NOW,
)
from provisioning.prove.fault_injection.runs import RUNS, print_card

DESCRIPTION = """\
Breaks a whole stack on purpose while hundreds of simulated people answer a
survey on it, then proves from the database that nothing which was reported as
saved is lost, duplicated, mixed up or undone. It starts a stack of its own and
removes it afterwards. Then negative controls remove the protections, one at a
time: the same comparison has to object.
"""

EPILOG = """\
docs/decisions/0115-injecting-faults.md lists what is injected, and
0114-judging-faults.md what is counted.

The last line is one JSON object. Exit status: 0 if every requirement holds,
1 if one does not, 2 if the run proves nothing (no final read, a load process
that died, or fewer than 90 % of the planned faults could be injected).
"""

MODULE = "provisioning.prove.fault_injection.__main__"
OWN_MOUNTS = ("unshare", "--mount", "--propagation=private")


def main() -> int:
    options = arguments()
    if options.list:
        for fault in FAULTS:
            print(f"{fault.name:<20} {fault.description}")
        return 0
    if options.card:
        return print_card(RUNS)
    prepare_environment(PRODUCTION, STACK)
    command = [str(PYTHON), "-m", "provisioning", MODULE, *sys.argv]
    # A stack that is kept has to be reached from outside.
    namespaces = [*OWN_MOUNTS] if options.keep else [*OWN_MOUNTS, "--net"]
    probe = [*namespaces, "true"]
    # A stack that runs already sees neither the mounts nor the network.
    may_unshare = not options.home and shutil.which("unshare")
    if may_unshare and not subprocess.call(probe, stderr=subprocess.DEVNULL):
        # Later there is no network to fetch them from.
        install_missing_packages()
        os.environ |= {MARK: "yes", NETWORK: NETWORK_NOW}
        command = [*namespaces, *command]
    os.execvp(command[0], command)  # noqa: S606


def arguments(command: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(DESCRIPTION, EPILOG)
    add = parser.add_argument
    quick = "5,000 saves and the ten fastest faults, in about three minutes"
    add("--quick", action="store_true", help=quick)
    add("--seed", type=int, metavar="N", help="repeat the draws of an earlier run")
    only = "inject this fault only; may be given several times"
    add("--only", action="append", choices=list(BY_NAME), metavar="NAME", help=only)
    add("--list", action="store_true", help="list the faults, and stop")
    add("--faults", type=int, metavar="K", help="number (72; with --quick 10)")
    add("--saves", type=int, metavar="N", help="at least (200,000; with --quick 5,000)")
    add("--minutes", type=float, metavar="M", help="at most; then it is void (45)")
    add("--rate", type=float, metavar="R", help="saves a second to offer (350)")
    add(
        "--promise",
        choices=["A1", "A2", "none"],
        help="lose the primary for good at the end, with commits that wait for the"
        " replica (A2) or without (A1); A2 without --quick and --only",
    )
    overload = "instead of faults, offer up to ten times the load that can be served"
    add("--overload", action="store_true", help=overload)
    matrix = (
        "instead of load, do seven actions while each program is down, hung or slow"
    )
    add("--matrix", action="store_true", help=matrix)
    add("--controls-only", action="store_true", help="run the negative controls alone")
    add_run = "add the result to provisioning/measured/faults.json, unless it is void"
    add("--add", action="store_true", help=add_run)
    card = "print what all added runs prove together, and stop"
    add("--card", action="store_true", help=card)
    home = "break the stack in this folder; refused while real people may answer there"
    add("--home", metavar="FOLDER", help=home)
    port = "port of the new stack's nginx (8480)"
    add("--port", type=port_number, default=8480, help=port)
    add("--keep", action="store_true", help="keep the logs, and the stack running")
    options = parser.parse_args(command)
    if options.add and (options.controls_only or options.overload or options.matrix):
        parser.error("--add keeps runs with faults only")
    return options
