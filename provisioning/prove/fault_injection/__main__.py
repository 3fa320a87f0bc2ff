"""Run `provisioning/faults` in its environment."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

from provisioning.commands import (
    ROOT,
    Refusal,
    conclude,
    output_of,
    print_figures,
    scratch_folder,
    seed_of,
)
from provisioning.installation.temporary_stack import temporary_stack
from provisioning.measure.benchmarks.meter import processor, revision_of
from provisioning.measure.load.target import refuse_real_respondents
from provisioning.prove.fault_injection.controls import CONTROLS, run_controls
from provisioning.prove.fault_injection.faults import (
    BY_NAME,
    MARK,
    FaultContext,
    LogDisk,
    PrimaryLoss,
    draw_faults,
    has_own_network,
)
from provisioning.prove.fault_injection.load_processes import open_rehearsal
from provisioning.prove.fault_injection.matrix import PEOPLE, MatrixRun
from provisioning.prove.fault_injection.overload import RESPONDENTS, OverloadRun
from provisioning.prove.fault_injection.report import Report, RunOptions
from provisioning.prove.fault_injection.run import FaultRun, TooSlow
from provisioning.prove.fault_injection.runs import RUNS, add_run
from provisioning.prove.fault_injection.stack import RunningStack
from provisioning.prove.fault_injection.start import arguments


def main() -> int:
    options = arguments()
    seed = seed_of(options)
    # Now: files may change during a long run.
    machine = {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "revision": revision_of(ROOT),
    }
    if options.overload or options.matrix:
        with _stack(options) as (stack, _):
            return (run_overload if options.overload else run_matrix)(stack, seed)
    report = Report(seed) if options.controls_only else run_faults(options, seed)
    print("Negative controls: with a protection removed, the judge must object")
    for control in run_controls(seed, CONTROLS):
        report.controls.append(control)
        print(control.text(), flush=True)
    report.print()
    if options.add and report.status != 2:
        add_run(RUNS, machine, report.described())
    return report.status


def run_faults(options: argparse.Namespace, seed: int) -> Report:
    """Run the faults on a stack; with --quick again if that was only too slow."""
    try:
        report = _run_once(options, seed)
        if not (options.quick and report.may_repeat()):
            return report
        report.print_run()
    except TooSlow as refusal:
        if not options.quick:
            raise
        print(refusal)
    print("No answer is wrong, but the timing is not as required: it is repeated once")
    report = _run_once(options, seed)
    report.is_repeated = True
    return report


def _run_once(options: argparse.Namespace, seed: int) -> Report:
    default = "none" if options.quick or options.only else "A2"
    promise = options.promise or default
    with _stack(options) as (stack, folder):
        log = stack.folder / "data" / "primary" / "pg_wal"
        context = FaultContext(
            stack=stack,
            random=Random(seed),  # noqa: S311
            log_disk=LogDisk(log) if os.environ.get(MARK) else None,
        )
        loss = PrimaryLoss(promise) if promise != "none" else None
        planned = run_options(options, context, seed)
        return FaultRun(context, folder, planned, loss).run()


def run_options(
    options: argparse.Namespace, context: FaultContext, seed: int
) -> RunOptions:
    quick, alone = options.quick, bool(options.only)
    wanted = [
        fault
        for fault in BY_NAME.values()
        if (fault.name in options.only if alone else fault.quick or not quick)
    ]
    prevented = {
        fault.name: why for fault in wanted if (why := fault.prevented(context))
    }
    names = [fault.name for fault in wanted if fault.name not in prevented]
    if not names:
        name, why = next(iter(prevented.items()))
        raise Refusal(f"{name} can't be done here: {why}")
    count = options.faults or (len(names) if quick or alone else 72)
    return RunOptions(
        seed=seed,
        faults=draw_faults(Random(seed), names, count),  # noqa: S311
        saves=options.saves or (5_000 if quick else 1_000 if alone else 200_000),
        minutes=options.minutes or 45,
        # Enough for the required saves: more would only cost processor time.
        rate=options.rate or (100 if quick else 350),
        window=2.0 if quick else 5.0,
        calm=1.0 if quick else 3.0,
        warm=6.0 if quick else 15.0,
        respondents=1_500 if quick else 8_000,
        # Saves of three seconds on two busy cores show no difference of 10 %.
        slower=2.0 if quick or alone else 1.1,
        prevented=prevented,
    )


def run_overload(stack: RunningStack, seed: int) -> int:
    rehearsal = open_rehearsal(stack.application, RESPONDENTS)
    result = OverloadRun(stack, rehearsal, seed).run()
    described = result.described()
    print_figures({name: value for name, value in described.items() if name != "steps"})
    void = result.why_void()
    return conclude({"seed": seed, **described}, result.shortcomings(), void=void)


def run_matrix(stack: RunningStack, seed: int) -> int:
    run = MatrixRun(stack, open_rehearsal(stack.application, PEOPLE), seed)
    run.run()
    return conclude({"seed": seed, "matrix": run.described()}, run.shortcomings())


# The stack


@contextlib.contextmanager
def _stack(options: argparse.Namespace) -> Iterator[tuple[RunningStack, Path]]:
    """Use the stack of --home, or start one and remove it; with a work folder."""
    with contextlib.ExitStack() as cleanup:
        folder = cleanup.enter_context(scratch_folder(keep=options.keep))
        if options.home:
            home = Path(options.home)
        else:
            if has_own_network():
                output_of(["ip", "link", "set", "lo", "up"], failing="No network")
            new = temporary_stack(folder, port=options.port, keep=options.keep)
            home = cleanup.enter_context(new)
        stack = cleanup.enter_context(contextlib.closing(RunningStack(home)))
        if options.home:
            refuse_real_respondents(
                stack.query, consequence="their servers would be broken"
            )
        yield stack, folder
