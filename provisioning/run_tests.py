"""Run the tests on the servers that production uses: `provisioning/test`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from provisioning.commands import ROOT, Stopped, run_command, step
from provisioning.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    TESTS,
    install_missing_packages,
    prepare_environment,
)
from provisioning.installation.servers import private_servers
from provisioning.processes import adopt_orphans, end_orphans, end_with_parent

TESTS_FAILED, NO_TESTS_COLLECTED = 1, 5
# A few failures on a busy machine may be accidents; more are not.
MOST_REPEATED = 10
# What needs neither Chromium, nor servers, nor a long time.
FAST = "not browser and not alone and not slow"
# More than cores: tests often wait for browsers, servers and processes. But each
# process costs a minute of processor time for its servers and its own start.
WORKERS = min(6, 2 * (os.cpu_count() or 1))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="provisioning/test",
        description="Runs the tests on private instances of PostgreSQL (with a"
        " replica), pgbouncer, Redis and Memcached, which it starts and stops, in"
        " several processes; then the tests marked 'alone' one after another, and"
        " beside them the tests marked 'sqlite' on SQLite. Up to"
        f" {MOST_REPEATED} tests that failed are repeated by themselves.",
        epilog="Further arguments go to pytest, and then there is one process:"
        " provisioning/test survey/tests/taking/test_save_page.py -k late",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--fast",
        action="store_true",
        help="only the tests without browsers and servers, on SQLite",
    )
    parser.add_argument(
        "--only",
        choices=["sqlite", "postgres"],
        help="run everything on one of the two databases",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=0,
        metavar="N",
        help=f"test processes (default: {WORKERS}, or 1 for chosen tests)",
    )
    parser.add_argument(
        "--prepare-only", action="store_true", help="install what is missing, and stop"
    )
    parser.add_argument(
        "--servers",
        action="store_true",
        help="start the servers alone and keep them until Ctrl-C",
    )
    options, chosen = parser.parse_known_args()
    install_missing_packages(for_tests=True)
    prepare_environment(PRODUCTION, TESTS, STACK)
    if options.prepare_only:
        return 0
    if options.servers:
        return hold_servers()
    adopt_orphans()
    try:
        workers = options.workers or (1 if chosen else WORKERS)
        if options.fast:
            return run_pytest(chosen, select=FAST, workers=options.workers or WORKERS)
        if options.only == "sqlite":
            return run_pytest(chosen, workers=workers)
        return run_everything(chosen, workers, postgres_only=bool(options.only))
    finally:
        end_orphans()


def run_everything(chosen: Sequence[str], workers: int, *, postgres_only: bool) -> int:
    """Run each group of tests, and return the first failure's status."""
    with ExitStack() as stack:
        with step("Starting PostgreSQL, pgbouncer, Redis and Memcached"):
            servers = start_servers(workers, stack)
        print("Tests on PostgreSQL", flush=True)
        statuses = [
            run_twice(chosen, select="not alone", workers=workers, servers=servers)
        ]
        # It needs none of the servers, and the tests of the stack mostly wait.
        # Its output would be mixed into theirs.
        output = stack.enter_context(tempfile.TemporaryFile())
        on_sqlite = None
        if not postgres_only:
            on_sqlite = start_pytest(
                chosen or files_marked("sqlite"), select="sqlite", output=output
            )
        print("Tests that run alone", flush=True)
        statuses.append(
            run_twice(
                chosen, among=files_marked("alone"), select="alone", servers=servers
            )
        )
        if on_sqlite:
            print("Tests on SQLite of what has its own SQL for it", flush=True)
            statuses.append(wait_for_pytest(on_sqlite))
            output.seek(0)
            print(output.read().decode(errors="replace"), end="", flush=True)
    return next(filter(is_failure, statuses), min(statuses))


def start_servers(count: int, stack: ExitStack) -> list[Path]:
    """Start sets of servers together: each of them waits most of the time."""
    # A server ends with the thread that started it, so the threads stay.
    threads = stack.enter_context(ThreadPoolExecutor(count))
    starting = [
        threads.submit(stack.enter_context, private_servers(in_memory=True))
        for _ in range(count)
    ]
    wait(starting)
    return [each.result() for each in starting]


def files_marked(marker: str) -> list[str]:
    """List the files with such tests: to collect all files takes 12 s."""
    return [
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.glob("*/**/test_*.py"))
        if f"mark.{marker}" in path.read_text()
    ]


def is_failure(status: int) -> bool:
    return status not in (0, NO_TESTS_COLLECTED)


def run_twice(
    chosen: Sequence[str],
    *,
    among: Sequence[str] = (),
    select: str,
    servers: Sequence[Path],
    workers: int = 1,
) -> int:
    """Run a group of tests, and a few that failed once more, by themselves."""
    with tempfile.TemporaryDirectory() as cache:
        options = [*(chosen or among), "-o", f"cache_dir={cache}"]
        status = run_pytest(options, select=select, workers=workers, servers=servers)
        if status != TESTS_FAILED or chosen:
            return status
        found = Path(cache, "v/cache/lastfailed")
        failed = list(json.loads(found.read_text())) if found.exists() else []
    if not 0 < len(failed) <= MOST_REPEATED:
        return status
    print("Repeated by themselves, because they failed:", *failed, sep="\n  ")
    sys.stdout.flush()
    return run_pytest(failed, servers=servers)


def run_pytest(
    chosen: Sequence[str],
    *,
    select: str = "",
    workers: int = 1,
    servers: Sequence[Path] = (),
) -> int:
    return wait_for_pytest(
        start_pytest(chosen, select=select, workers=workers, servers=servers)
    )


def start_pytest(
    chosen: Sequence[str],
    *,
    select: str = "",
    workers: int = 1,
    servers: Sequence[Path] = (),
    output: IO[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    options = ["-m", select] if select else []
    if workers > 1:
        # By file, because servers and browsers are started once for a file.
        options += ["-n", str(workers), "--dist=loadfile", "--no-loadscope-reorder"]
    return subprocess.Popen(
        [PYTHON, "-m", "pytest", *options, *chosen],
        cwd=ROOT,
        env={
            **os.environ,
            "GROUNDSWELL_TEST_SERVERS": ":".join(map(str, servers)),
        },
        stdout=output,
        stderr=output,
        preexec_fn=end_with_parent(signal.SIGINT),
    )


def wait_for_pytest(process: subprocess.Popen[bytes]) -> int:
    """Return pytest's exit status, also when it is interrupted."""
    try:
        status = process.wait()
    except Stopped as stopped:
        # Pytest closes its browsers and says where it was. The terminal sends
        # its Ctrl-C to pytest too, and a second one would cut that short.
        for seconds in [5, 10] if stopped.number == signal.SIGINT else [0, 10]:
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
            else:
                raise
        process.kill()
        process.wait()
        raise
    return status if status >= 0 else 128 - status


def hold_servers() -> int:
    with private_servers(in_memory=True) as folder:
        print(f"export GROUNDSWELL_TEST_SERVERS={folder}", flush=True)
        try:
            while True:
                signal.pause()
        except Stopped:
            return 0


if __name__ == "__main__":
    sys.exit(run_command("provisioning/test", main))
