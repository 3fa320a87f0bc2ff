"""Stop, kill and measure the workers of feeds in a running stack."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from threading import Event

from provisioning.commands import Refusal, wait_until
from provisioning.measure.benchmarks.phases import Size, mix, offer, rehearsal_of
from provisioning.measure.benchmarks.stack import Stack
from provisioning.processes import children_of, descendants_of, peak_mb
from provisioning.prove.fault_injection.stack import RunningStack

WORKERS = ("download_worker", "scan_worker", "long_worker")
# Programs of the stack, and the statement that tells whether they have work.
UNFINISHED = "SELECT count(*) > 0 FROM survey_feedstage WHERE ended_at IS NULL AND "
AT_WORK = {
    "download_worker": UNFINISHED + "stage = 'download'",
    "scan_worker": UNFINISHED + "stage <> 'download'",
}


@contextmanager
def stopped_workers(stack: Stack) -> Iterator[None]:
    with closing(RunningStack(stack.folder)) as running, running.stopped(*WORKERS):
        yield


def kill_workers(stack: Stack) -> int:
    """Kill the download worker, then a scan worker, each while it works."""
    killed = 0
    with closing(RunningStack(stack.folder)) as running:
        for program, at_work in AT_WORK.items():
            # What a killed worker had begun, another one begins after half a minute.
            if wait_until(partial(is_true, stack, at_work), seconds=90):
                pids = running.tree(program)
                running.kill_together(pids)
                killed += bool(pids)
                print(f"  killed {program}", flush=True)
                running.wait_for(program)
    return killed


def is_true(stack: Stack, statement: str) -> bool:
    return stack.sql(statement)[0][0] == "t"


def peak_memory(stack: Stack) -> float:
    """Return the most that a worker, with its children, has held so far, in MB."""
    with closing(RunningStack(stack.folder)) as running:
        masters = [pid for program in WORKERS for pid in running.pids(program)]
    # Threads are in the process that the supervisor has started.
    workers = [each for pid in masters for each in children_of(pid) or [pid]]
    return max(sum(map(peak_mb, [each, *descendants_of(each)])) for each in workers)


TOGETHER = 32
# Of what the machine serves at most without scans: a survey day at night is quieter.
OFFERED_SHARE = 0.5
RUNNING = "SELECT count(*) > 0 FROM survey_feedscan WHERE state = 'running'"


def saves_beside_scans(
    stack: Stack, seconds: float, scan_all: Callable[[], float]
) -> dict[str, float]:
    """Measure page saves at one rate, first without scans and then during them.

    `scan_all` returns the seconds it took.
    """
    size = Size(respondents=20_000, pages=20, seconds=seconds)
    over = Event()

    def scan_until_over() -> float:
        """Return the share of the time in which scans were running."""
        began, scanned = time.monotonic(), 0.0
        while not over.is_set():
            scanned += scan_all()
        return scanned / (time.monotonic() - began)

    with (
        rehearsal_of(stack, size, purpose="feeds") as rehearsal,
        ThreadPoolExecutor(1) as thread,
    ):
        rate = OFFERED_SHARE * mix(rehearsal, TOGETHER)["mix_per_s"]
        alone = offer(rehearsal, rate)
        scanning = thread.submit(scan_until_over)
        try:
            if not wait_until(partial(is_true, stack, RUNNING), seconds=60):
                raise Refusal("No scan has begun")
            beside = offer(rehearsal, rate)
        finally:
            over.set()
        share = scanning.result()
    return {
        "saves_alone_per_s": alone["saves_per_s"],
        "saves_beside_per_s": beside["saves_per_s"],
        "saves_kept": round(beside["saves_per_s"] / alone["saves_per_s"], 4),
        "requests_refused": beside["failed"],
        "p99_alone_ms": alone["p99"],
        "p99_beside_ms": beside["p99"],
        "scanning_share": round(share, 2),
    }
