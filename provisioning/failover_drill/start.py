"""Prepare `provisioning/failovers`, and start it in namespaces of its own."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import tempfile
from glob import glob
from pathlib import Path

from provisioning.commands import Refusal, positive_integer
from provisioning.environment import (
    PRODUCTION,
    PYTHON,
    ROLES,
    STACK,
    install_packages,
    path_of_program,
    prepare_environment,
)
from provisioning.failover_drill.faults import FAULTS
from provisioning.processes import start_process

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
MODULE = "provisioning.failover_drill.__main__"
# Everything that is started or mounted ends with the process namespace. A shell
# is its first process, because that one has to reap what killed programs leave.
NAMESPACES = (
    *("unshare", "--net", "--mount", "--propagation=private", "--pid"),
    *("--fork", "--kill-child", "--mount-proc"),
    *("sh", "-c", '"$@"; exit $?', "sh"),
)
PACKAGES = ("failover", "haproxy", "worker", "firewall", "power_loss")


def main() -> int:
    options = arguments()
    if options.list:
        for fault in FAULTS:
            print(f"{fault.name:<12} {fault.description}")
        return 0
    if os.geteuid() != 0:
        raise Refusal("Only root can make network namespaces; try sudo")
    prepare_environment(PRODUCTION, STACK)
    install_what_is_missing()
    # Not TMPDIR: the path of a Unix socket ends at 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="gs-failover-", dir=options.folder))
    folder.chmod(0o711)
    command = [*NAMESPACES, str(PYTHON), "-m", "provisioning", MODULE]
    process = start_process(
        [*command, "provisioning/failovers", *command_line(options, folder)],
        parent_signal=signal.SIGKILL,
    )
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
        if options.keep:
            print(f"Logs are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def install_what_is_missing() -> None:
    lists = [(ROLES / role / "packages.txt").read_text() for role in PACKAGES]
    signs = dict(line.split() for text in lists for line in text.splitlines())
    missing = [
        package
        for package, sign in signs.items()
        if not (glob(sign) if sign.startswith("/") else path_of_program(sign))
    ]
    if missing:
        install_packages(missing)


def command_line(options: argparse.Namespace, folder: Path) -> list[str]:
    """Return the options for the process that runs in the namespaces."""
    line = [f"--promise={options.promise}", f"--count={options.count}"]
    line += [f"--rate={options.rate}", f"--folder={folder}"]
    line += [f"--only={name}" for name in options.only or ()]
    line += [f"--seed={options.seed}"] if options.seed is not None else []
    line += [f"--control={options.control}"] if options.control else []
    return line + (["--record"] if options.record else [])


def arguments(command: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/failovers",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    promise = "A2: commits wait for a standby; A1: for the primary alone (A2)"
    add("--promise", choices=["A1", "A2"], default="A2", help=promise)
    count = "run until the primary has changed so often (10)"
    add("--count", type=positive_integer, default=10, metavar="N", help=count)
    only = "inject this fault only; may be given several times"
    names = [fault.name for fault in FAULTS]
    add("--only", action="append", choices=names, metavar="NAME", help=only)
    add("--list", action="store_true", help="list the faults, and stop")
    control = "remove what protects from two primaries: a split has to be found"
    add("--control", choices=["split"], help=control)
    rate = "page saves a second to offer (60)"
    add("--rate", type=positive_integer, default=60, metavar="R", help=rate)
    add("--seed", type=int, metavar="S", help="repeat the draws of an earlier run")
    record = "add the result to provisioning/measured/failovers.json"
    add("--record", action="store_true", help=record)
    folder = "where the servers' data lie during the run (/tmp)"
    add("--folder", type=Path, default=Path("/tmp"), metavar="F", help=folder)  # noqa: S108
    add("--keep", action="store_true", help="keep the servers' logs")
    return parser.parse_args(command)
