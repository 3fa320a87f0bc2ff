"""Count the page saves that a full backup costs, with and without it in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from provisioning.backups.repository import Repository
from provisioning.benchmarks.stack import Application
from provisioning.benchmarks.timed_requests import log_in, send_requests, served
from provisioning.commands import step
from provisioning.load.crowd import Person
from provisioning.load.target import Target


def measure_saves(
    application: Application,
    rehearsal: tuple[dict[str, Any], list[str]],
    repository: Repository,
    *,
    rounds: int,
    seconds: float,
) -> dict[str, Any]:
    """Measure page saves at full speed, with and without a full backup running.

    That is the hardest case: whatever the backup takes, a save lacks.
    """
    application.collect_static()
    alone, during = [], []
    with served(application, "--workers=2") as target:
        students = log_in(*rehearsal, target)
        # Not counted: the first requests fill caches.
        send_requests(target, students, seconds=3)
        for number in range(rounds):
            with step(f"Saving pages, round {number + 1} of {rounds}"):
                # Each of them first in half of the rounds: machines vary.
                if number % 2:
                    alone.append(saves_a_second(target, students, seconds))
                during.append(_beside_backup(target, students, seconds, repository))
                if not number % 2:
                    alone.append(saves_a_second(target, students, seconds))
    return {
        "saves_alone": round(statistics.median(alone)),
        "saves_during_backup": round(statistics.median(during)),
        "saves_lost_percent": round(
            100 * (1 - statistics.median(during) / statistics.median(alone)), 1
        ),
    }


def saves_a_second(target: Target, students: Sequence[Person], seconds: float) -> float:
    return len(send_requests(target, students, seconds=seconds)) / seconds


def _beside_backup(
    target: Target, students: Sequence[Person], seconds: float, repository: Repository
) -> float:
    with ThreadPoolExecutor(1) as pool:
        backup = pool.submit(_timed_backup, repository)
        replies = send_requests(target, students, seconds=seconds)
        began, ended = backup.result()
    last = min(ended, max(reply.sent for reply in replies))
    counted = [reply for reply in replies if began <= reply.sent <= last]
    return len(counted) / (last - began)


def _timed_backup(repository: Repository) -> tuple[float, float]:
    began = time.monotonic()
    repository.back_up("full", from_standby=True)
    return began, time.monotonic()
