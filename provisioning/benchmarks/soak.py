"""Watch the memory of the taking pool's workers over very many requests.

A worker ends by itself after gunicorn's max_requests, and a new one takes its
place with fresh memory, which would hide a leak in a long run. So each worker
is compared with itself, from its second reading on: at the first it may be a
fork that has answered nothing yet.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from provisioning.benchmarks.capacity_model import WORKER_MB
from provisioning.benchmarks.phases import USUAL_SAVES, Rehearsal, Size, refuse_silence
from provisioning.benchmarks.stack import Stack
from provisioning.commands import Refusal
from provisioning.installation.supervisor import Supervisor, workers_of
from provisioning.load.tally import Tally
from provisioning.processes import children_of, stat_of

MOST_GROWTH_MB = 5.0
LONGEST_START = 2.0
PARTS = 10
# Seconds of a part at least, so that its speed predicts the next one.
SHORTEST = 0.5
# Seconds to wait for a new worker.
PATIENCE = 30


@dataclass(frozen=True, slots=True)
class Reading:
    answered: int
    # MB by worker.
    workers: Mapping[int, float]


@dataclass(slots=True)
class Memory:
    readings: list[Reading] = field(default_factory=list)

    @property
    def most(self) -> float:
        return max(
            max(reading.workers.values(), default=0.0) for reading in self.readings
        )

    @property
    def growth(self) -> float:
        """The most that a worker ever had above its own second reading."""
        return max((max(own[1:]) - own[1] for own in self._settled()), default=0.0)

    @property
    def compared(self) -> int:
        """The number of workers that were compared with themselves."""
        return len(self._settled())

    @property
    def restarted(self) -> int:
        """The number of workers that replaced another one."""
        first, *later = self.readings
        pids = {pid for reading in later for pid in reading.workers}
        return len(pids - set(first.workers))

    def _settled(self) -> list[list[float]]:
        """Return the readings of each worker that has more than two."""
        found: dict[int, list[float]] = {}
        for reading in self.readings:
            for pid, megabytes in reading.workers.items():
                found.setdefault(pid, []).append(megabytes)
        return [own for own in found.values() if len(own) > 2]

    def shortcomings(self) -> list[str]:
        found = []
        if self.most > WORKER_MB:
            found.append(f"a worker has {self.most:.1f} MB, above {WORKER_MB}")
        if self.growth > MOST_GROWTH_MB:
            found.append(
                f"a worker grew by {self.growth:.1f} MB, above {MOST_GROWTH_MB:.0f}"
            )
        if not self.compared:
            found.append("no worker lived for two tenths: ask for fewer requests")
        return found


def soak(
    rehearsal: Rehearsal, size: Size, requests: int, together: int
) -> dict[str, Any]:
    """Send the mix until so many requests were answered; read memory ten times."""
    drivers, memory = rehearsal.drivers, Memory()
    count = len(drivers)
    drivers.do("enter_room", -(-size.room // count))
    answered, speed, failed, began = 0, float(USUAL_SAVES), 0, time.monotonic()
    with closing(Supervisor(rehearsal.stack.folder)) as supervisor:
        for part in range(PARTS + 1):
            wanted = requests * part // PARTS
            while answered < wanted:
                tally: Tally = drivers.tally(
                    "mix",
                    together=max(1, together // count),
                    warm=0.0,
                    seconds=max(SHORTEST, (wanted - answered) / speed),
                )
                refuse_silence(tally)
                answered += tally.answered()
                failed += tally.failed()
                speed = tally.per_second()
            workers = workers_of(supervisor.programs(), "taking")
            memory.readings.append(Reading(answered, workers))
            sizes = " ".join(f"{megabytes:.1f}" for megabytes in workers.values())
            share = answered / requests
            print(f"  {share:>5.0%} {answered:>11,}  {sizes}", flush=True)
    return {
        "requests": answered,
        "seconds": round(time.monotonic() - began, 1),
        "together": together,
        "failed": failed,
        "most_mb": round(memory.most, 1),
        "growth_mb": round(memory.growth, 1),
        "restarted": memory.restarted,
        "compared": memory.compared,
        "shortcomings": memory.shortcomings(),
        "readings": [
            {
                "answered": reading.answered,
                "mb": [round(megabytes, 1) for megabytes in reading.workers.values()],
            }
            for reading in memory.readings
        ],
    }


def people_for(size: Size, requests: int) -> int:
    """Return how many people so many requests need: half of the mix are saves."""
    # People whose request failed are replaced before their last page, and
    # logging in counts too.
    return 2 * size.room + requests * 6 // 10 // size.pages


# The start of a worker


def start_of_a_worker(stack: Stack) -> float:
    """Return the seconds from a worker's fork until it is ready.

    Ends one worker, which finishes its requests and is replaced.
    """
    with closing(Supervisor(stack.folder)) as supervisor:
        masters = [
            program
            for program in supervisor.programs()
            if program["group"] == "taking" and program["pid"]
        ]
    if not masters:
        raise Refusal("The taking pool does not run; see provisioning/stack status")
    master, name = masters[0]["pid"], masters[0]["name"]
    # Each worker writes it when it is ready.
    ready = stack.run / f"{name}.ready"

    def written() -> float:
        return ready.stat().st_mtime if ready.exists() else 0.0

    before, written_before = set(children_of(master)), written()
    if not before:
        raise Refusal(f"{name} has no workers; see provisioning/stack status")
    os.kill(min(before), signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        new = set(children_of(master)) - before
        stat = stat_of(min(new)) if new else None
        if stat and written() > written_before:
            return seconds_between(stat.started, written())
        time.sleep(0.005)
    raise Refusal(f"{name} has not replaced a worker within {PATIENCE} s")


def seconds_between(forked: float, written: float) -> float:
    """Subtract `forked`, since the machine's start, from `written`, since 1970."""
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    # The kernel counts a fork in steps of 10 ms.
    return max(0.0, written - booted - forked)


def start_shortcomings(seconds: float) -> list[str]:
    if seconds <= LONGEST_START:
        return []
    return [f"a worker took {seconds:.2f} s to start, above {LONGEST_START:.0f}"]
