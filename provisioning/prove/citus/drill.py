"""Answer a survey while the primary becomes a cluster, and while a shard moves.

What was reported as saved is read back by the checker of fault_injection.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from provisioning.commands import Refusal, listen, step, wait_until
from provisioning.measure.benchmarks.stack import Application
from provisioning.measure.benchmarks.timed_requests import start_server
from provisioning.measure.load.respondent import ACKED
from provisioning.processes import stop_process
from provisioning.prove.citus.migration import (
    Cluster,
    distribute,
    follow_primary,
    lead_to_coordinator,
    move_shard,
    promote_after_last_change,
    promote_at_once,
)
from provisioning.prove.citus.nodes import Node
from provisioning.prove.fault_injection.load_processes import (
    LoadProcesses,
    open_rehearsal,
)
from provisioning.prove.fault_injection.retrying_respondent import Rehearsal
from provisioning.prove.fault_injection.saves import AnswerSource, Attempt
from provisioning.prove.fault_injection.verdict import (
    COMPLETED,
    STORED,
    Judge,
    StoredAnswer,
    Verdict,
)

# The shard with most of these people.
LARGEST_SHARD = """
SELECT get_shard_id_for_distribution_column('public.survey_respondent', person) shard,
    array_agg(person)
FROM unnest('{}'::bigint[]) person
GROUP BY shard ORDER BY count(*) DESC LIMIT 1
"""
# About 30 of them lie in one shard of 32.
MOVED_RESPONDENTS = 800
# Seconds of saves, at the rate of the load, before and after.
CALM = 30.0


class Migrated(NamedTuple):
    verdict: Verdict
    # For which statements were held back.
    paused: float


class Moved(NamedTuple):
    verdict: Verdict
    # Of each move.
    seconds: list[float]
    # Seconds from first sending to receipt, while the shard was moved.
    longest_wait: float


@contextmanager
def migrated_under_load(
    application: Application, programs: Path, load: argparse.Namespace
) -> Iterator[tuple[Cluster, Migrated]]:
    """Migrate while people answer; yield the cluster and what became of the answers."""
    with ExitStack() as stack:
        with step("Starting a coordinator that follows the primary, and two workers"):
            cluster = follow_primary(application, programs, stack)

        def switch() -> Application:
            promote_after_last_change(application, cluster)
            distribute(cluster)
            return cluster.application

        coordinator = cluster.coordinator
        yield cluster, _switch_under_load(application, coordinator, load, switch)


def lose_under_load(
    application: Application, programs: Path, load: argparse.Namespace
) -> Verdict:
    """Be the control: switch without waiting for the last changes."""
    with ExitStack() as stack:
        application.collect_static()
        cluster = follow_primary(application, programs, stack, workers=0)

        def switch() -> Application:
            promote_at_once(application, cluster)
            return application

        coordinator = cluster.coordinator
        return _switch_under_load(application, coordinator, load, switch).verdict


def move_shard_under_load(cluster: Cluster, load: argparse.Namespace) -> Moved:
    """Move one shard between two workers while its respondents save pages."""
    coordinator = cluster.coordinator
    with step("Inviting people, and finding the shard with most of them"):
        every = open_rehearsal(
            cluster.application, MOVED_RESPONDENTS, port=coordinator.port
        )
        keys = ",".join(str(number) for number, _ in every.people)
        [[shard, listed]] = coordinator.sql(LARGEST_SHARD.format(f"{{{keys}}}"))
        moved = {int(number) for number in listed.strip("{}").split(",")}
        there = [person for person in every.people if person[0] in moved]
        rehearsal = replace(every, people=there)
    seconds = []
    with _answering(cluster.application, rehearsal, load) as (processes, _):
        began = time.time()
        with step(f"Moving their shard {load.moves} times while they answer"):
            for _ in range(load.moves):
                before = time.monotonic()
                move_shard(cluster, int(shard))
                seconds.append(time.monotonic() - before)
        ended = time.time()
    attempts = processes.timeline.attempts
    return Moved(
        _judge(coordinator, rehearsal, load, attempts),
        seconds,
        max(_waits(attempts, began, ended), default=0.0),
    )


def _switch_under_load(
    application: Application,
    coordinator: Node,
    load: argparse.Namespace,
    switch: Callable[[], Application],
) -> Migrated:
    with step("Inviting people"):
        rehearsal = open_rehearsal(application, load.respondents)
    with (
        _answering(application, rehearsal, load) as (processes, restart),
        step("Migrating while they answer"),
    ):
        began = time.monotonic()
        restart(switch())
        lead_to_coordinator(application)
        paused = time.monotonic() - began
    attempts = processes.timeline.attempts
    return Migrated(_judge(coordinator, rehearsal, load, attempts), paused)


@contextmanager
def _answering(
    application: Application, rehearsal: Rehearsal, load: argparse.Namespace
) -> Iterator[tuple[LoadProcesses, Callable[[Application], None]]]:
    """Let people answer, also for a while before and after.

    Yields them, and what starts the application's server in place of the one before.
    """
    # While the database is away, the application logs every request.
    log = application.run / "log" / "application.log"
    with (
        tempfile.TemporaryDirectory() as folder,
        listen(0) as listener,
        log.open("a") as output,
    ):
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        processes = LoadProcesses(
            Path(folder), rehearsal, url=address, rate=load.rate, seed=load.seed
        )
        servers: list[subprocess.Popen[bytes]] = []

        def restart(application: Application) -> None:
            # Browsers repeat what they sent to the old program in vain.
            stop_process(*servers, seconds=20)
            servers[:] = [start_server(application, listener, output=output)]

        try:
            restart(application)
            _wait_for_saves(processes, load)
            yield processes, restart
            _wait_for_saves(processes, load)
            with step("Waiting for what people have not saved yet"):
                if not processes.drain():
                    raise Refusal("Not everyone could save what they had in the end")
        finally:
            processes.kill()
            stop_process(*servers, seconds=20)


def _judge(
    coordinator: Node,
    rehearsal: Rehearsal,
    load: argparse.Namespace,
    attempts: list[Attempt],
) -> Verdict:
    # By psql: this runs in the system's Python, which has no driver.
    stored = [
        StoredAnswer(int(respondent), int(item), state, value, int(revision))
        for respondent, item, state, value, revision in coordinator.sql(
            STORED % rehearsal.administration
        )
    ]
    completed = coordinator.sql(COMPLETED % rehearsal.administration)
    return Judge(
        AnswerSource.of(load.seed, rehearsal.described),
        attempts,
        stored,
        frozenset(int(respondent) for (respondent,) in completed),
    ).verdict()


def _waits(attempts: list[Attempt], began: float, ended: float) -> Iterator[float]:
    """Yield the seconds from first sending to receipt of saves between two moments."""
    first: dict[tuple[int, int, int], float] = {}
    for attempt in sorted(attempts, key=lambda each: each.sent):
        save = (attempt.respondent, attempt.page, attempt.revision)
        sent = first.setdefault(save, attempt.sent)
        if attempt.outcome == ACKED and sent < ended and attempt.answered > began:
            yield attempt.answered - sent
            # A repetition is no second save.
            first[save] = ended


def _wait_for_saves(processes: LoadProcesses, load: argparse.Namespace) -> None:
    def acknowledged() -> int:
        attempts = processes.read_logs().attempts
        return sum(attempt.outcome == ACKED for attempt in attempts)

    enough = acknowledged() + load.rate * CALM
    if not wait_until(lambda: acknowledged() >= enough, seconds=180, pause=0.5):
        raise Refusal("Nobody saves pages")
