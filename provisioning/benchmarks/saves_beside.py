"""Measure page saves with and without a report job running, in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from provisioning.benchmarks.timed_requests import (
    TimedReply,
    figures_of,
    send_requests,
)
from provisioning.commands import print_table
from provisioning.load.crowd import Person
from provisioning.load.target import Target


class SavingRound(NamedTuple):
    replies: list[TimedReply]
    # When the job began and ended, on the same clock.
    began: float = 0.0
    ended: float = 0.0


def save_beside(
    job: Callable[[], float],
    *,
    name: str,
    target: Target,
    students: Sequence[Person],
    rounds: int,
    seconds: float,
    prepare: Callable[[int], None] = lambda number: None,
) -> float:
    """Print the times of saves; return how many percent fewer are made with the job.

    `job` returns its own seconds, so that the start of a command does not count: in
    production a worker is running.
    """

    def timed_job() -> tuple[float, float]:
        took = job()
        ended = time.monotonic()
        return ended - took, ended

    # A warm-up, not counted.
    send_requests(target, students, seconds=min(seconds, 5))
    alone: list[SavingRound] = []
    together: list[SavingRound] = []
    for number in range(rounds):
        # In turns, and each of them first in half of the rounds: machines vary.
        for with_job in (False, True) if number % 2 else (True, False):
            if not with_job:
                replies = send_requests(target, students, seconds=seconds)
                alone.append(SavingRound(replies))
                continue
            prepare(number)
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(timed_job)
                replies = send_requests(target, students, seconds=seconds)
                together.append(SavingRound(replies, *running.result()))
    during = [
        [reply for reply in each.replies if each.began <= reply.sent <= each.ended]
        for each in together
    ]
    rows, speeds = [], {}
    for kind, found in (
        ("alone", [each.replies for each in alone]),
        (f"with a {name}", [each.replies for each in together]),
        ("while it runs", during),
    ):
        times = [reply.milliseconds for replies in found for reply in replies]
        speeds[kind] = statistics.median(map(len, found)) / seconds
        if times:
            median, p95, _ = figures_of(times)
            speed = "" if found is during else f"{speeds[kind]:,.0f}"
            rows.append((kind, median, p95, speed))
    print_table(("saves, ms", "median", "p95", "saves/s"), rows)
    took = statistics.median(each.ended - each.began for each in together)
    fewer = 100 * (1 - speeds[f"with a {name}"] / speeds["alone"])
    print(
        f"The {name} took {took:.2f} s beside the saves; they were {fewer:.1f} % fewer"
        f" over all, one {name} in {seconds:g} s."
    )
    return fewer
