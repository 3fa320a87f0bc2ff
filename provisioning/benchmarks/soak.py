"""The memory of the taking pool's workers over very many requests.

A worker ends by itself after gunicorn's max_requests, and a new one takes its
place with fresh memory: on a long run a leak would hide behind that. So each
worker is compared with itself, from its second reading on. At the first it
may be a fork that has answered nothing yet.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provisioning.benchmarks.capacity_model import WORKER_MB
from provisioning.benchmarks.phases import USUAL_SAVES, Rehearsal, Size
from provisioning.benchmarks.stack import Stack
from provisioning.commands import Refusal
from provisioning.installation.supervisor import Supervisor, workers_of
from provisioning.load.tally import Tally
from provisioning.processes import children_of, stat_of

MOST_GROWTH_MB = 5.0
LONGEST_START = 2.0
PARTS = 10
# Of a part, in seconds: long enough that its speed foretells the next one.
SHORTEST = 0.5
# Patience with a worker that is to come, in seconds.
PATIENCE = 30


@dataclass(frozen=True, slots=True)
class Reading:
    answered: int
    # Worker -> its megabytes.
    workers: Mapping[int, float]


@dataclass(slots=True)
class Memory:
    readings: list[Reading] = field(default_factory=list)

    @property
    def most(self) -> float:
        return max(max(one.workers.values(), default=0.0) for one in self.readings)

    @property
    def growth(self) -> float:
        """The most that a worker ever had above its own second reading."""
        return max((max(own[1:]) - own[1] for own in self._settled()), default=0.0)

    @property
    def compared(self) -> int:
        """Workers that were there long enough to be compared with themselves."""
        return len(self._settled())

    @property
    def restarted(self) -> int:
        """Workers that came while it went on, each in another one's place."""
        first, *later = self.readings
        return len({pid for one in later for pid in one.workers} - set(first.workers))

    def of_each(self) -> dict[int, list[float]]:
        """Worker -> its megabytes at each reading that found it."""
        found: dict[int, list[float]] = {}
        for one in self.readings:
            for pid, megabytes in one.workers.items():
                found.setdefault(pid, []).append(megabytes)
        return found

    def _settled(self) -> list[list[float]]:
        return [own for own in self.of_each().values() if len(own) > 2]

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
    """The mix, until so many requests were answered; workers read ten times."""
    drivers, memory = rehearsal.drivers, Memory()
    count = len(drivers)
    drivers.do("enter_room", -(-size.room // count))
    answered, speed, failed, began = 0, float(USUAL_SAVES), 0, time.monotonic()
    with closing(Supervisor(rehearsal.stack.home)) as supervisor:
        memory.readings.append(_read(supervisor, 0))
        _print_reading(memory, requests)
        for part in range(1, PARTS + 1):
            wanted = requests * part // PARTS
            while answered < wanted:
                tally: Tally = drivers.tally(
                    "mix",
                    together=max(1, together // count),
                    warm=0.0,
                    seconds=max(SHORTEST, (wanted - answered) / speed),
                )
                if not tally.answered():
                    raise Refusal(f"Nothing was answered: {tally.failures_by_name()}")
                answered += tally.answered()
                failed += tally.failed()
                speed = tally.per_second()
            memory.readings.append(_read(supervisor, answered))
            _print_reading(memory, requests)
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
                "answered": one.answered,
                "mb": [round(it, 1) for it in one.workers.values()],
            }
            for one in memory.readings
        ],
    }


def people_for(size: Size, requests: int) -> int:
    """So many that nobody is missing at the end: half of the mix are saves."""
    # Who fails is replaced before the last page, and logging in counts too.
    return 2 * size.room + requests * 6 // 10 // size.pages


def _read(supervisor: Supervisor, answered: int) -> Reading:
    return Reading(answered, workers_of(supervisor.programs(), "taking"))


def _print_reading(memory: Memory, requests: int) -> None:
    last = memory.readings[-1]
    share = last.answered / requests
    sizes = " ".join(f"{megabytes:.1f}" for megabytes in last.workers.values())
    print(f"  {share:>5.0%} {last.answered:>11,}  {sizes}", flush=True)


# The start of a worker


def start_of_a_worker(stack: Stack) -> float:
    """Seconds from the fork to being ready; ends one worker, which is replaced.

    Nothing is lost by it: a worker answers what it is at before it goes.
    """
    with closing(Supervisor(stack.home)) as supervisor:
        masters = {
            one["pid"]: one["name"]
            for one in supervisor.programs()
            if one["group"] == "taking" and one["pid"]
        }
    if not masters:
        raise Refusal("The taking pool does not run; see provisioning/stack status")
    master, name = next(iter(masters.items()))
    # Written by each worker when it is ready.
    ready = stack.run / f"{name}.ready"
    before, written = set(children_of(master)), _written(ready)
    if not before:
        raise Refusal(f"{name} has no workers; see provisioning/stack status")
    os.kill(min(before), signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        new = set(children_of(master)) - before
        stat = stat_of(min(new)) if new else None
        if stat and _written(ready) > written:
            return seconds_between(stat.started, _written(ready))
        time.sleep(0.005)
    raise Refusal(f"{name} has not replaced a worker within {PATIENCE} s")


def seconds_between(forked: float, written: float) -> float:
    """`forked` counts from the machine's start, `written` from 1970."""
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    # The kernel tells the fork to 10 ms only.
    return max(0.0, written - booted - forked)


def _written(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


def start_shortcomings(seconds: float) -> list[str]:
    if seconds <= LONGEST_START:
        return []
    return [f"a worker took {seconds:.2f} s to start, above {LONGEST_START:.0f}"]
