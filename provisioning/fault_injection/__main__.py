"""Run `provisioning/faults` in its environment."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import psycopg2

from provisioning.commands import (
    ROOT,
    Refusal,
    output_of,
    reason,
    run_command,
    step,
)
from provisioning.fault_injection.arguments import FAULT_DESCRIPTIONS, arguments
from provisioning.fault_injection.controls import CONTROLS, run_controls
from provisioning.fault_injection.disk_full import MARK, LogDisk
from provisioning.fault_injection.failover import PrimaryLoss
from provisioning.fault_injection.faults import (
    FAULTS,
    QUICK,
    FaultContext,
    draw_faults,
)
from provisioning.fault_injection.load_processes import open_rehearsal
from provisioning.fault_injection.overload import RESPONDENTS, OverloadRun
from provisioning.fault_injection.report import Report
from provisioning.fault_injection.run import FaultRun, RunOptions, TooSlow
from provisioning.fault_injection.stack import RunningStack
from provisioning.load.target import refuse_real_respondents


def main() -> int:
    options = arguments()
    seed = options.seed if options.seed is not None else secrets.randbelow(10**9)
    print(f"Seed {seed}", flush=True)
    if options.overload:
        with _stack(options) as (stack, folder):
            return run_overload(stack, folder, seed)
    report = Report(seed)
    if not options.controls_only:
        run_faults(options, report)
    print("Negative controls: with a protection removed, the judge must object")
    for control in run_controls(seed, CONTROLS):
        report.controls.append(control)
        print(control.line(), flush=True)
    report.print()
    return report.status


def run_faults(options: argparse.Namespace, report: Report) -> None:
    """Run the faults on a stack; with --quick again if that was only too slow."""
    try:
        _run_once(options, report)
        if not (options.quick and report.may_repeat()):
            return
        report.print_run()
    except TooSlow as refusal:
        if not options.quick:
            raise
        print(refusal)
    print("No answer is wrong, but the timing is not as required: it is repeated once")
    report.is_repeated = True
    _run_once(options, report)


def _run_once(options: argparse.Namespace, report: Report) -> None:
    promise = options.promise
    if not promise:
        promise = "none" if options.quick or options.only else "A2"
    with _stack(options) as (stack, folder):
        log = stack.folder / "data" / "primary" / "pg_wal"
        context = FaultContext(
            stack=stack,
            random=Random(report.seed),  # noqa: S311
            lose_replies=lambda is_on: None,
            log_disk=LogDisk(log) if os.environ.get(MARK) else None,
        )
        report.options = run_options(options, context, report.seed)
        loss = PrimaryLoss(promise) if promise != "none" else None
        report.outcome = FaultRun(context, folder, report.options, loss).run()


def run_options(
    options: argparse.Namespace, context: FaultContext, seed: int
) -> RunOptions:
    quick = options.quick
    wanted = options.only or list(QUICK if quick else FAULT_DESCRIPTIONS)
    prevented = {
        fault.name: fault.prevented(context)
        for fault in FAULTS
        if fault.name in wanted and fault.prevented(context)
    }
    names = [name for name in wanted if name not in prevented]
    if not names:
        raise Refusal(f"{wanted[0]} can't be done here: {prevented[wanted[0]]}")
    count = options.faults or (len(names) if quick or options.only else 60)
    return RunOptions(
        seed=seed,
        faults=draw_faults(Random(seed), names, count),  # noqa: S311
        saves=options.saves or (5_000 if quick else 1_000 if options.only else 200_000),
        minutes=options.minutes or 30,
        rate=options.rate or (250 if quick else 350),
        window=2.0 if quick else 5.0,
        calm=1.0 if quick else 3.0,
        warm=6.0 if quick else 15.0,
        respondents=1_500 if quick else 8_000,
        # Saves of three seconds on two busy cores show no difference of 10 %.
        slower=2.0 if quick or options.only else 1.1,
        prevented=prevented,
    )


def run_overload(stack: RunningStack, folder: Path, seed: int) -> int:
    rehearsal = open_rehearsal(stack, folder, RESPONDENTS)
    result = OverloadRun(stack, rehearsal, seed).run()
    shortcomings, void = result.shortcomings(), result.why_void()
    for shortcoming in shortcomings:
        print(f"Not as required: {shortcoming}")
    verdict = "NOT as required" if shortcomings else "Every requirement holds"
    print(f"Void: {void}" if void else verdict)
    print(json.dumps({"seed": seed, **result.described(), "missed": shortcomings}))
    if void:
        return 2
    return 1 if shortcomings else 0


# The stack


@contextlib.contextmanager
def _stack(options: argparse.Namespace) -> Iterator[tuple[RunningStack, Path]]:
    """Use the stack of --home, or start one and remove it; with a work folder."""
    folder = Path(tempfile.mkdtemp(prefix="groundswell-", dir="/tmp"))  # noqa: S108
    try:
        # Servers under a user of their own have to reach their home in it.
        folder.chmod(0o755)
        if options.home:
            # Its servers see no file system that this command mounts.
            os.environ.pop(MARK, None)
            with contextlib.closing(RunningStack(Path(options.home))) as stack:
                try:
                    refuse_real_respondents(
                        stack.query, consequence="their servers would be broken"
                    )
                except psycopg2.Error as error:
                    raise Refusal(
                        "The database can't tell if real people answer:"
                        f" {reason(str(error))}"
                    ) from None
                yield stack, folder
        else:
            with _new_stack(options, folder) as stack:
                yield stack, folder
    finally:
        if options.keep:
            print(f"Logs are kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _new_stack(options: argparse.Namespace, folder: Path) -> Iterator[RunningStack]:
    path = folder / "stack"
    command = str(ROOT / "provisioning" / "stack")
    environment = {**os.environ, "GROUNDSWELL_STACK": str(path)}
    # The guard removes the stack when this command ends, even if it is killed.
    remove = 'read -r _; "$0" down >/dev/null 2>&1 && rm -rf "$1"'
    guard = subprocess.Popen(
        ["sh", "-c", "exit 0" if options.keep else remove, command, folder],
        stdin=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    try:
        with step("Starting a stack"):
            output_of(
                [command, "up", f"--port={options.port}"],
                failing="The stack does not start",
                env=environment,
            )
        with contextlib.closing(RunningStack(path)) as stack:
            yield stack
    finally:
        assert guard.stdin is not None  # noqa: S101
        guard.stdin.close()
        if not options.keep:
            with step("Removing the stack"):
                guard.wait()


if __name__ == "__main__":
    sys.exit(run_command("provisioning/faults", main))
