"""Measure page saves with and without a job running beside them, in turns."""

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
    seconds: float


class SavesBeside(NamedTuple):
    """Page saves a second."""

    alone: float
    # Over whole rounds, and while the job ran.
    with_job: float
    during: float

    @property
    def fewer_percent(self) -> float:
        return 100 * (1 - self.with_job / self.alone)

    @property
    def fewer_during_percent(self) -> float:
        return 100 * (1 - self.during / self.alone)


def save_beside(
    job: Callable[[], float],
    *,
    name: str,
    target: Target,
    students: Sequence[Person],
    rounds: int,
    seconds: float,
    prepare: Callable[[int], None] = lambda number: None,
) -> SavesBeside:
    """Print the times of saves, and return how many are made in a second.

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
    during: list[SavingRound] = []
    took = []
    for number in range(rounds):
        # In turns, and each of them first in half of the rounds: machines vary.
        for with_job in (False, True) if number % 2 else (True, False):
            if not with_job:
                replies = send_requests(target, students, seconds=seconds)
                alone.append(SavingRound(replies, seconds))
                continue
            prepare(number)
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(timed_job)
                replies = send_requests(target, students, seconds=seconds)
                began, ended = running.result()
            together.append(SavingRound(replies, seconds))
            took.append(ended - began)
            # A longer job goes on when the round is over.
            end = min(ended, max(reply.sent for reply in replies))
            replies = [reply for reply in replies if began <= reply.sent <= end]
            during.append(SavingRound(replies, end - began))
    return _print_speeds(name, alone, together, during, statistics.median(took))


def _print_speeds(
    name: str,
    alone: Sequence[SavingRound],
    together: Sequence[SavingRound],
    during: Sequence[SavingRound],
    took: float,
) -> SavesBeside:
    rows, speeds = [], []
    for kind, rounds in (
        ("alone", alone),
        (f"with a {name}", together),
        ("while it runs", during),
    ):
        speeds.append(
            statistics.median(len(one.replies) / one.seconds for one in rounds)
        )
        times = [reply.milliseconds for one in rounds for reply in one.replies]
        if times:
            median, p95, _ = figures_of(times)
            rows.append((kind, median, p95, f"{speeds[-1]:,.0f}"))
    print_table(("saves, ms", "median", "p95", "saves/s"), rows)
    found = SavesBeside(*speeds)
    print(
        f"The {name} took {took:.2f} s beside the saves; they were"
        f" {found.fewer_during_percent:.1f} % fewer while it ran, and"
        f" {found.fewer_percent:.1f} % over all, one {name} in"
        f" {alone[0].seconds:g} s."
    )
    return found
