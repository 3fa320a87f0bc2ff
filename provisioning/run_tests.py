"""Run the tests on the servers that production uses: `provisioning/test`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Lock
from typing import IO

from provisioning.commands import ROOT, Stopped, command_parser, step
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    TESTS,
    install_missing_packages,
    prepare_environment,
)
from provisioning.installation.servers import private_servers
from provisioning.measure.calibration import slowness
from provisioning.processes import adopt_orphans, end_orphans, end_with_parent

TESTS_FAILED, NO_TESTS_COLLECTED = 1, 5
# A few failures on a busy machine may be accidents; more are not, and a lost answer
# never is: the fault run repeats by itself what was only too slow.
MOST_REPEATED = 10
NEVER_REPEATED = "test_no_answer_is_lost_under_faults"
# What needs neither Chromium, nor servers, nor a long time.
FAST = "not browser and not alone and not slow"
# Niceness of tests beside those of the stack, whose faults have to be recovered from in
# time.
GIVE_WAY = 10
# More than cores: tests often wait for browsers, servers and processes. But each
# process costs a minute of processor time for its servers and its own start, and
# one more runs the tests of the stack and then those on SQLite.
WORKERS = min(6, (os.cpu_count() or 1) + 1)


def main() -> int:
    parser = command_parser(
        "Runs the tests on private instances of PostgreSQL (with a"
        " replica), pgbouncer, Redis and Memcached, which it starts and stops, in"
        " several processes; beside them the tests marked 'alone', and then the tests"
        " marked 'sqlite' on SQLite. Up to"
        f" {MOST_REPEATED} tests that failed are repeated by themselves.",
        epilog="Further arguments go to pytest, and then there is one process:"
        " provisioning/test survey/tests/taking/test_save_page.py -k late",
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
        if options.fast or options.only == "sqlite":
            count = options.workers or (WORKERS if options.fast else workers)
            select = FAST if options.fast else ""
            with PytestRun(chosen, select, count, count) as run:
                run.begin()
                return run.finish()
        return run_everything(chosen, workers, postgres_only=bool(options.only))
    finally:
        end_orphans()


def run_everything(chosen: Sequence[str], workers: int, *, postgres_only: bool) -> int:
    """Run three groups of tests side by side, and return the first failure's status."""
    with ExitStack() as stack:
        with step("Starting PostgreSQL, pgbouncer, Redis and Memcached"):
            servers = start_servers(workers, stack)
        # The tests of the stack mostly wait, and have time limits of the product's:
        # the others give way to them. Those on SQLite need no server, and compute:
        # they come when the others have reached the browsers, for which they wait.
        # Chosen tests are few, and begin at once.
        groups = {"Tests of the whole stack": "alone"}
        if not postgres_only:
            groups["Tests on SQLite of what has its own SQL for it"] = "sqlite"
        at_a_time = len(groups) if chosen else 1
        # A process ends with the thread that started it, so the threads stay.
        threads = stack.enter_context(ThreadPoolExecutor(at_a_time))
        processes = workers + at_a_time
        beside = {
            title: stack.enter_context(
                PytestRun(chosen or files_marked(mark), mark, processes, quiet=True)
            )
            for title, mark in groups.items()
        }
        print("Tests on PostgreSQL", flush=True)
        main = stack.enter_context(
            PytestRun(chosen, "not alone", processes, workers, servers)
        )
        # First of all when the command is interrupted.
        for run in beside.values():
            stack.callback(run.cancel)
        running = [threads.submit(run.run) for run in beside.values()]
        main.begin()
        statuses = [main.finish()]
        for each in running:
            each.result()
        for title, run in beside.items():
            print(title, flush=True)
            statuses.append(run.finish())
    failures = [each for each in statuses if each not in (0, NO_TESTS_COLLECTED)]
    return failures[0] if failures else min(statuses)


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
    """List the files with such tests: to collect all files takes 5 s."""
    return [
        str(path.relative_to(ROOT))
        # Not in .venv, which has more files than all else.
        for path in sorted(ROOT.glob("[!.]*/**/test_*.py"))
        if f"mark.{marker}" in path.read_text()
    ]


class PytestRun:
    """A run of pytest. A few tests that fail are repeated by themselves."""

    def __init__(
        self,
        chosen: Sequence[str],
        select: str,
        processes: int = 1,
        workers: int = 1,
        servers: Sequence[Path] = (),
        *,
        quiet: bool = False,
    ) -> None:
        self.is_chosen = bool(chosen) and not quiet
        self.environment = {
            **os.environ,
            "GROUNDSWELL_TEST_SERVERS": ":".join(map(str, servers)),
            # Measured once, before the first of them starts.
            "GROUNDSWELL_TEST_PATIENCE": f"{slowness() * processes:.1f}",
        }
        self.stack = ExitStack()
        # What runs beside others prints its lines when it is asked for them.
        self.output: IO[bytes] | None = None
        if quiet:
            output = TemporaryFile()  # noqa: SIM115
            self.output = self.stack.enter_context(output)
        self.cache = Path(self.stack.enter_context(TemporaryDirectory()))
        self.niceness = 0 if select == "alone" else GIVE_WAY
        options = ["-m", select, "-o", f"cache_dir={self.cache}"]
        if workers > 1:
            # By file, because servers and browsers are started once for a file.
            options += ["-n", str(workers), "--dist=loadfile", "--no-loadscope-reorder"]
        self.options = [*options, *chosen]
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = Lock()
        self.is_cancelled = False

    def __enter__(self) -> PytestRun:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process:
            end_pytest(self.process, signal.SIGINT)
        self.stack.close()

    def begin(self) -> None:
        with self.lock:
            if not self.is_cancelled:
                self.process = self.start(self.options)

    def cancel(self) -> None:
        """Keep a run that is still waiting from starting."""
        with self.lock:
            self.is_cancelled = True

    def run(self) -> None:
        self.begin()
        if self.process:
            wait_for_pytest(self.process)

    def start(self, options: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["nice", f"-n{self.niceness}", PYTHON, "-m", "pytest", *options],
            cwd=ROOT,
            env=self.environment,
            stdout=self.output,
            stderr=self.output,
            preexec_fn=end_with_parent(signal.SIGINT),
        )

    def finish(self) -> int:
        """Return the exit status, of the repetition if there was one."""
        assert self.process is not None  # noqa: S101
        status = wait_for_pytest(self.process)
        if self.output:
            self.output.seek(0)
            print(self.output.read().decode(errors="replace"), end="", flush=True)
            self.output = None
        failed = []
        if status == TESTS_FAILED and not self.is_chosen:
            record = self.cache / "v/cache/lastfailed"
            failed = list(json.loads(record.read_text())) if record.exists() else []
        if not 0 < len(failed) <= MOST_REPEATED or NEVER_REPEATED in str(failed):
            return status
        print("Repeated by themselves, because they failed:", *failed, sep="\n  ")
        sys.stdout.flush()
        self.process = self.start(failed)
        return wait_for_pytest(self.process)


def wait_for_pytest(process: subprocess.Popen[bytes]) -> int:
    """Return pytest's exit status, also when it is interrupted."""
    try:
        status = process.wait()
    except Stopped as stopped:
        end_pytest(process, stopped.number)
        raise
    return status if status >= 0 else 128 - status


def end_pytest(process: subprocess.Popen[bytes], number: int) -> None:
    """Let pytest close its browsers and say where it was, and end it if it does not."""
    # The terminal sends its Ctrl-C to pytest too, and a second one would cut
    # that short.
    for seconds in [5, 10] if number == signal.SIGINT else [0, 10]:
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        else:
            return
    process.kill()
    process.wait()


def hold_servers() -> int:
    with private_servers(in_memory=True) as folder:
        print(f"export GROUNDSWELL_TEST_SERVERS={folder}", flush=True)
        try:
            while True:
                signal.pause()
        except Stopped:
            return 0
