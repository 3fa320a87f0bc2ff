"""Run the respondents of a fault run in processes of their own.

Each keeps a number of respondents at work until SIGTERM, then lets them save
what waits, marks its log as complete, and ends with status 0.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from provisioning.measure.benchmarks.stack import Application
from provisioning.measure.load.target import target_of
from provisioning.processes import end_with_parent, send_signal
from provisioning.prove.fault_injection.recovery import Timeline
from provisioning.prove.fault_injection.retrying_respondent import (
    PATIENCE,
    Rehearsal,
    RespondentPool,
)
from provisioning.prove.fault_injection.saves import LogReader

# Eight choices of five tell 390,000 pages apart.
PAGES, ITEMS = 6, 8
# What each process contributes to the load; the last one may lose replies.
PARTS = (0.375, 0.375, 0.25)
# Share of replies that are lost, where some are.
LOST = 0.3
# In the order of their IDs, as their codes are written.
RESPONDENTS = """
SELECT json_agg(id ORDER BY id) FROM survey_respondent WHERE administration_id = {}
"""


def open_rehearsal(
    application: Application, respondents: int, *, port: int = 5432
) -> Rehearsal:
    """Open an administration without answers; read who its respondents are.

    `port` is that of the primary.
    """
    sizes = (f"--respondents={respondents}", f"--pages={PAGES}", f"--items={ITEMS}")
    described, codes = application.open_rehearsal(
        *sizes, f"--name=faults-{time.time_ns()}"
    )
    administration = described["administration_id"]
    [[listed]] = application.sql(RESPONDENTS.format(administration), port=port)
    people = list(zip(json.loads(listed)[:respondents], codes, strict=True))
    return Rehearsal(administration, described, people)


class LoadProcesses:
    """Start and end load processes together; read their logs while they grow."""

    def __init__(
        self,
        folder: Path,
        rehearsal: Rehearsal,
        *,
        url: str,
        rate: float,
        seed: int,
    ) -> None:
        target = target_of(url)
        self.timeline = Timeline()
        self.logs = [LogReader(folder / f"attempts-{n}.log") for n in range(len(PARTS))]
        # Forked: nothing has to be imported or handed over again.
        context = multiprocessing.get_context("fork")
        self.processes: list[multiprocessing.process.BaseProcess] = []
        seats = max(8, round(rate * 0.75))
        for number, (part, log) in enumerate(zip(PARTS, self.logs, strict=True)):
            share = replace(rehearsal, people=rehearsal.people[number :: len(PARTS)])
            load = {"seats": round(seats * part), "rate": rate * part, "seed": seed}
            arguments = (share, log.path, {"target": target, **load})
            process = context.Process(target=run_pool, args=arguments)
            process.start()
            self.processes.append(process)

    def read_logs(self) -> Timeline:
        for log in self.logs:
            self.timeline.add(log.read())
        return self.timeline

    def lose_replies(self, is_on: bool) -> None:
        """Lose some replies to the last process, or no more."""
        number = signal.SIGUSR1 if is_on else signal.SIGUSR2
        send_signal([self.processes[-1].pid or 0], number)

    def ended(self) -> int:
        return sum(not process.is_alive() for process in self.processes)

    def drain(self) -> bool:
        """Let all respondents save what waits; return whether all of them could."""
        for process in self.processes:
            process.terminate()
        deadline = time.monotonic() + PATIENCE + 20
        for process in self.processes:
            process.join(max(1.0, deadline - time.monotonic()))
        self.read_logs()
        return all(process.exitcode == 0 for process in self.processes) and all(
            log.completed for log in self.logs
        )

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()


def run_pool(rehearsal: Rehearsal, log: Path, load: dict[str, Any]) -> None:
    """Be a load process, until SIGTERM."""
    end_with_parent(signal.SIGKILL)()
    pool = RespondentPool(rehearsal, log, **load)

    def handle(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            pool.is_closing = True
        else:
            pool.engine.share_lost = LOST if number == signal.SIGUSR1 else 0.0

    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, handle)
    # A Ctrl-C is for the command that started this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(0 if pool.run() else 1)
