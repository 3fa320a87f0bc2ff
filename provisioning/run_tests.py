"""`provisioning/test`: every test, on SQLite and on the stack's servers."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from provisioning.commands import ROOT, Stopped, run_command, step
from provisioning.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    TESTS,
    install_packages,
    prepare_environment,
)
from provisioning.installation.servers import missing_packages, private_servers
from provisioning.processes import adopt_orphans, end_orphans, end_with_parent

NO_TEST_CHOSEN = 5


def main() -> int:
    options, chosen = _arguments()
    packages = missing_packages()
    if packages:
        install_packages(packages)
    prepare_environment(PRODUCTION, TESTS, STACK)
    if options.prepare_only:
        return 0
    if options.servers:
        return _hold_servers()
    adopt_orphans()
    try:
        return _run(options.only, chosen)
    finally:
        end_orphans()


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="provisioning/test",
        description="Runs every test twice: on SQLite, then on private instances of"
        " PostgreSQL, pgbouncer, Redis and Memcached, which it starts and stops.",
        epilog="Further arguments go to pytest: survey/tests/test_saving.py -k late",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--only", choices=["sqlite", "postgres"], help="one of the two runs"
    )
    parser.add_argument(
        "--prepare-only", action="store_true", help="install what is missing, and stop"
    )
    parser.add_argument(
        "--servers",
        action="store_true",
        help="start the servers alone and keep them until Ctrl-C",
    )
    return parser.parse_known_args()


def _run(only: str | None, chosen: Sequence[str]) -> int:
    first = NO_TEST_CHOSEN
    if only != "postgres":
        print("Tests on SQLite", flush=True)
        first = _pytest(chosen)
    if only == "sqlite" or first not in (0, NO_TEST_CHOSEN):
        return first
    with ExitStack() as stack:
        with step("Starting PostgreSQL, pgbouncer, Redis and Memcached"):
            folder = stack.enter_context(private_servers())
        # What is marked `once` says nothing new here: it reads no database, or
        # what it looks at is the same on any.
        second = _pytest(["-m", "not once", *chosen], servers=str(folder))
    return first if second == NO_TEST_CHOSEN else second


def _pytest(arguments: Sequence[str], *, servers: str = "") -> int:
    process = subprocess.Popen(
        [PYTHON, "-m", "pytest", *arguments],
        cwd=ROOT,
        env={**os.environ, "GROUNDSWELL_TEST_SERVERS": servers},
        preexec_fn=end_with_parent(signal.SIGINT),
    )
    try:
        status = process.wait()
    except Stopped as stopped:
        _let_finish(process, stopped.number)
        raise
    return status if status >= 0 else 128 - status


def _let_finish(process: subprocess.Popen, number: int) -> None:
    """Let pytest close its browsers and say where it was."""
    # The terminal sends its Ctrl-C to pytest too, and a second would cut
    # short what the first one began.
    patience = [5, 10] if number == signal.SIGINT else [0, 10]
    for seconds in patience:
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        else:
            return
    process.kill()
    process.wait()


def _hold_servers() -> int:
    with private_servers() as folder:
        print(f"export GROUNDSWELL_TEST_SERVERS={folder}", flush=True)
        try:
            while True:
                signal.pause()
        except Stopped:
            return 0


if __name__ == "__main__":
    sys.exit(run_command("provisioning/test", main))
