"""Watch the memory of the taking pool's workers over very many requests.

A worker ends by itself after gunicorn's max_requests, and a new one takes its
place with fresh memory, which would hide a leak in a long run. So each worker
is compared with itself, from its second reading on: at the first it may be a
fork that has answered nothing yet.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from provisioning.commands import Refusal, wait_until
from provisioning.installation.supervisor import Supervisor, workers_of
from provisioning.measure.benchmarks.phases import (
    USUAL_SAVES,
    Rehearsal,
    Size,
    find_knee,
    refuse_silence,
    rehearsal_of,
    with_enough_people,
)
from provisioning.measure.benchmarks.stack import Stack
from provisioning.measure.capacity import WORKER_MB
from provisioning.processes import children_of, stat_of

MOST_GROWTH_MB = 5.0
LONGEST_START = 2.0
PARTS = 10
# Seconds of a part at least, so that its speed predicts the next one.
SHORTEST = 0.5
# Seconds to wait for a new worker.
PATIENCE = 30

# MB by worker, at one moment.
Reading = Mapping[int, float]


def measure(stack: Stack, size: Size, requests: int) -> dict[str, Any]:
    """Find the knee, send so many requests there, and time the start of a worker."""
    size = with_enough_people(size, parts=len(size.connections))
    # Half of the mix are saves. People whose request failed are replaced before their
    # last page, and logging in counts too.
    more = 2 * size.room + requests * 6 // 10 // size.pages
    size = dataclasses.replace(size, respondents=size.respondents + more)
    start = start_of_a_worker(stack)
    with rehearsal_of(stack, size) as rehearsal:
        together = find_knee(rehearsal)["together"]
        print(
            f"The mix, {together} at a time, until {requests:,} were answered;"
            " MB of each taking worker (PSS)",
            flush=True,
        )
        soaked = soak(rehearsal, requests, together)
    soaked["start_seconds"] = round(start, 3)
    if start > LONGEST_START:
        soaked["shortcomings"].append(
            f"a worker took {start:.2f} s to start, above {LONGEST_START:.0f}"
        )
    return soaked


def soak(rehearsal: Rehearsal, requests: int, together: int) -> dict[str, Any]:
    """Send the mix until so many requests were answered; read memory ten times."""
    drivers = rehearsal.drivers
    drivers.do("enter_room", rehearsal.share(rehearsal.size.room))
    readings: list[tuple[int, Reading]] = []
    answered, speed, failed, began = 0, float(USUAL_SAVES), 0, time.monotonic()
    with closing(Supervisor(rehearsal.stack.folder)) as supervisor:
        for part in range(PARTS + 1):
            wanted = requests * part // PARTS
            while answered < wanted:
                tally = drivers.tally(
                    "mix",
                    together=rehearsal.share(together),
                    warm=0.0,
                    seconds=max(SHORTEST, (wanted - answered) / speed),
                )
                refuse_silence(tally)
                answered += tally.answered()
                failed += tally.failed()
                speed = tally.per_second()
            workers = workers_of(supervisor.programs(), "taking")
            readings.append((answered, workers))
            sizes = " ".join(f"{megabytes:.1f}" for megabytes in workers.values())
            share = answered / requests
            print(f"  {share:>5.0%} {answered:>11,}  {sizes}", flush=True)
    return {
        "requests": answered,
        "seconds": round(time.monotonic() - began, 1),
        "together": together,
        "failed": failed,
        **judge_memory([workers for _, workers in readings]),
        "readings": [
            {"answered": at, "mb": [round(mb, 1) for mb in workers.values()]}
            for at, workers in readings
        ],
    }


def judge_memory(readings: Sequence[Reading]) -> dict[str, Any]:
    """Return the most memory of a worker, the most growth, and what is too much."""
    by_worker: dict[int, list[float]] = defaultdict(list)
    for reading in readings:
        for pid, megabytes in reading.items():
            by_worker[pid].append(megabytes)
    most = max((max(sizes) for sizes in by_worker.values()), default=0.0)
    settled = [sizes[1:] for sizes in by_worker.values() if len(sizes) > 2]
    growth = max((max(sizes) - sizes[0] for sizes in settled), default=0.0)
    shortcomings = []
    if most > WORKER_MB:
        shortcomings.append(f"a worker has {most:.1f} MB, above {WORKER_MB}")
    if growth > MOST_GROWTH_MB:
        shortcomings.append(
            f"a worker grew by {growth:.1f} MB, above {MOST_GROWTH_MB:.0f}"
        )
    if not settled:
        shortcomings.append("no worker lived for two tenths: ask for fewer requests")
    return {
        "most_mb": round(most, 1),
        "growth_mb": round(growth, 1),
        # Workers that replaced another one.
        "restarted": len(by_worker.keys() - readings[0].keys()),
        "compared": len(settled),
        "shortcomings": shortcomings,
    }


def start_of_a_worker(stack: Stack) -> float:
    """Return the seconds from a worker's fork until it is ready.

    Ends one worker, which finishes its requests and is replaced.
    """
    with closing(Supervisor(stack.folder)) as supervisor:
        masters = [each for each in supervisor.programs("taking") if each["pid"]]
    if not masters:
        raise Refusal("The taking pool does not run; see provisioning/stack status")
    master, name = masters[0]["pid"], masters[0]["name"]
    # Each worker writes it when it is ready.
    ready = stack.run / "ready" / name

    def written() -> float:
        return ready.stat().st_mtime if ready.exists() else 0.0

    def new_worker() -> float | None:
        """Return when a new worker that is ready was forked."""
        new = set(children_of(master)) - before
        stat = stat_of(min(new)) if new else None
        return stat.started if stat and written() > written_before else None

    before, written_before = set(children_of(master)), written()
    if not before:
        raise Refusal(f"{name} has no workers; see provisioning/stack status")
    os.kill(min(before), signal.SIGTERM)
    wait_until(new_worker, seconds=PATIENCE, pause=0.005)
    if forked := new_worker():
        return seconds_between(forked, written())
    raise Refusal(f"{name} has not replaced a worker within {PATIENCE} s")


def seconds_between(forked: float, written: float) -> float:
    """Subtract `forked`, since the machine's start, from `written`, since 1970."""
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    # The kernel counts a fork in steps of 10 ms.
    return max(0.0, written - booted - forked)
