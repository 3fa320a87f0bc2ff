"""Answer a survey while the primary becomes a cluster, and count what is lost."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from provisioning.benchmarks.stack import Application
from provisioning.benchmarks.timed_requests import start_server
from provisioning.citus.migration import (
    Cluster,
    distribute,
    follow_primary,
    lead_to_coordinator,
    promote_after_last_change,
    promote_at_once,
)
from provisioning.citus.nodes import Node
from provisioning.commands import Refusal, listen, step, wait_until
from provisioning.fault_injection.answers import AnswerSource
from provisioning.fault_injection.load_processes import (
    ITEMS,
    PAGES,
    RESPONDENTS,
    LoadProcesses,
)
from provisioning.fault_injection.retrying_respondent import Rehearsal
from provisioning.fault_injection.verdict import Judge, StoredAnswer, Verdict
from provisioning.load.respondent import ACKED
from provisioning.processes import stop_process

STORED = """
SELECT respondent_id, item_id, state, value, revision FROM survey_response
WHERE administration_id = {}
"""
COMPLETED = """
SELECT id FROM survey_respondent
WHERE administration_id = {} AND completed_at IS NOT NULL
"""
# Seconds of saves, at the rate of the load, before and after the switch.
CALM = 10.0


class Migrated(NamedTuple):
    verdict: Verdict
    # For which statements were held back.
    paused: float


@dataclass(frozen=True, slots=True)
class Load:
    rate: float
    seed: int
    respondents: int


@contextmanager
def migrated_under_load(
    application: Application, programs: Path, load: Load
) -> Iterator[tuple[Cluster, Migrated]]:
    """Migrate while people answer; yield the cluster and what became of the answers."""
    with ExitStack() as stack:
        with step("Starting a coordinator that follows the primary, and two workers"):
            cluster = follow_primary(application, programs, stack)

        def switch() -> Application:
            promote_after_last_change(application, cluster)
            distribute(cluster)
            return cluster.application

        yield (
            cluster,
            _switch_under_load(application, cluster.coordinator, load, switch),
        )


def lose_under_load(application: Application, programs: Path, load: Load) -> Verdict:
    """Be the control: switch without waiting for the last changes."""
    with ExitStack() as stack:
        application.collect_static()
        cluster = follow_primary(application, programs, stack, workers=0)

        def switch() -> Application:
            promote_at_once(application, cluster)
            return application

        return _switch_under_load(
            application, cluster.coordinator, load, switch
        ).verdict


def _switch_under_load(
    application: Application,
    coordinator: Node,
    load: Load,
    switch: Callable[[], Application],
) -> Migrated:
    with step("Inviting people"):
        rehearsal = _open_rehearsal(application, load)
    # While the database is away, the application logs every request.
    log = application.run / "log" / "application.log"
    with (
        tempfile.TemporaryDirectory() as folder,
        listen(0) as listener,
        log.open("a") as output,
    ):
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = start_server(application, listener, output=output)
        processes = LoadProcesses(
            Path(folder), rehearsal, url=address, rate=load.rate, seed=load.seed
        )
        try:
            _wait_for_saves(processes, load)
            with step("Migrating while they answer"):
                began = time.monotonic()
                after = switch()
                # Browsers repeat what they sent to the old program in vain.
                stop_process(server, seconds=20)
                server = start_server(after, listener, output=output)
                lead_to_coordinator(application)
                paused = time.monotonic() - began
            _wait_for_saves(processes, load)
            with step("Waiting for what people have not saved yet"):
                if not processes.drain():
                    raise Refusal("Not everyone could save what they had in the end")
        finally:
            processes.kill()
            stop_process(server, seconds=20)
    administration = rehearsal.administration
    stored = [
        StoredAnswer(int(who), int(item), state, value, int(revision))
        for who, item, state, value, revision in coordinator.sql(
            STORED.format(administration)
        )
    ]
    finished = coordinator.sql(COMPLETED.format(administration))
    verdict = Judge(
        AnswerSource.of(load.seed, rehearsal.described),
        processes.timeline.attempts,
        stored,
        frozenset(int(who) for (who,) in finished),
    ).verdict()
    return Migrated(verdict, paused)


def _wait_for_saves(processes: LoadProcesses, load: Load) -> None:
    def acknowledged() -> int:
        attempts = processes.read_logs().attempts
        return sum(attempt.outcome == ACKED for attempt in attempts)

    enough = acknowledged() + load.rate * CALM
    if not wait_until(lambda: acknowledged() >= enough, seconds=180, pause=0.5):
        raise Refusal("Nobody saves pages")


def _open_rehearsal(application: Application, load: Load) -> Rehearsal:
    described, codes = application.open_rehearsal(
        f"--respondents={load.respondents}",
        *(f"--pages={PAGES}", f"--items={ITEMS}", f"--name=migrated-{os.getpid()}"),
    )
    administration = described["administration_id"]
    [[found]] = application.sql(RESPONDENTS.format(administration))
    numbers = [int(number) for number in found.strip("[]").split(",")]
    people = list(zip(numbers, codes, strict=True))
    return Rehearsal(administration, described, people)
