"""Measure page saves while a job runs and without it, in alternating rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from provisioning.commands import Refusal, print_table
from provisioning.measure.benchmarks.timed_requests import (
    TimedReply,
    figures_of,
    send_requests,
)
from provisioning.measure.load.crowd import Person
from provisioning.measure.load.target import Target

# Of what the machine serves at most: on a full machine, anything else takes from saves.
OFFERED_SHARE = 0.5
SECONDS_FOR_LIMIT = 10


class SavingRound(NamedTuple):
    # Answered within so many seconds.
    replies: list[TimedReply]
    seconds: float

    @classmethod
    def of(
        cls, replies: Sequence[TimedReply], began: float, ended: float
    ) -> SavingRound:
        answered = [each for each in replies if began <= each.answered <= ended]
        return cls(answered, ended - began)


class SavesBeside(NamedTuple):
    """Page saves a second: alone, and while the job ran."""

    alone: float
    during: float
    # Of those that were due while the job ran, how many more were not answered then.
    lost_percent: float


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
    """Print the times of saves at half of the limit, and return how many are made.

    `job` returns its own seconds, so that the start of a command does not count: in
    production a worker is running.
    """

    def timed_job() -> tuple[float, float]:
        took = job()
        ended = time.monotonic()
        return ended - took, ended

    # A warm-up, not counted.
    send_requests(target, students, seconds=5)
    most = send_requests(target, students, seconds=SECONDS_FOR_LIMIT)
    limit = len(most) / SECONDS_FOR_LIMIT
    rate = OFFERED_SHARE * limit
    print(f"{limit:,.0f} saves a second at most; {rate:,.0f} are sent")
    alone: list[SavingRound] = []
    during: list[SavingRound] = []
    took = []
    for number in range(rounds):
        # In turns, and each of them first in half of the rounds: machines vary.
        for with_job in (False, True) if number % 2 else (True, False):
            if not with_job:
                start = time.monotonic()
                replies = send_requests(target, students, seconds=seconds, rate=rate)
                alone.append(SavingRound.of(replies, start, start + seconds))
                continue
            prepare(number)
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(timed_job)
                start = time.monotonic()
                replies = send_requests(target, students, seconds=seconds, rate=rate)
                began, ended = running.result()
            took.append(ended - began)
            # A longer job goes on when the round is over.
            ended = min(ended, start + seconds)
            during.append(SavingRound.of(replies, max(began, start), ended))
    return _print_speeds(name, rate, alone, during, statistics.median(took))


def _print_speeds(
    name: str,
    rate: float,
    alone: Sequence[SavingRound],
    during: Sequence[SavingRound],
    took: float,
) -> SavesBeside:
    rows, speeds = [], []
    for kind, saving_rounds in (("alone", alone), (f"beside a {name}", during)):
        rates = [len(each.replies) / each.seconds for each in saving_rounds]
        speeds.append(statistics.median(rates))
        times = [reply.milliseconds for each in saving_rounds for reply in each.replies]
        if times:
            median, p95, _ = figures_of(times)
            rows.append((kind, median, p95, f"{speeds[-1]:,.1f}"))
    print_table(("saves, ms", "median", "p95", "saves/s"), rows)
    # Also those that were never answered.
    due = rate * sum(each.seconds for each in during if each.seconds > 0)
    if not due:
        raise Refusal(f"The {name} ran after the saves; try again with more people")
    answered = sum(len(each.replies) for each in during)
    saves = SavesBeside(speeds[0], speeds[1], 100 * (1 - answered / due))
    print(
        f"The {name} took {took:.2f} s beside the saves, of which"
        f" {saves.lost_percent:.1f} % were lost."
    )
    return saves
