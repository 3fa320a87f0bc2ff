"""Stop, kill and measure the workers of feeds in a running stack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from provisioning.benchmarks.stack import Stack
from provisioning.commands import wait_until
from provisioning.fault_injection.stack import RunningStack
from provisioning.processes import children_of, descendants_of, peak_mb

WORKERS = ("download_worker", "scan_worker", "long_worker")
# Programs of the stack, and the statement that tells whether they have work.
UNFINISHED = "SELECT count(*) > 0 FROM survey_feedstage WHERE ended_at IS NULL AND "
AT_WORK = {
    "download_worker": UNFINISHED + "stage = 'download'",
    "scan_worker": UNFINISHED + "stage <> 'download'",
}


@contextmanager
def stopped_workers(stack: Stack) -> Iterator[None]:
    with closing(RunningStack(stack.folder)) as running:
        try:
            for program in WORKERS:
                running.stop(program)
            yield
        finally:
            for program in WORKERS:
                running.start(program)
                running.wait_for(program)


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
