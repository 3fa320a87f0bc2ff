"""Count waiting and running jobs by queue, and idle workers by pool.

Jobs that wait for the end of a survey day have a figure of their own: they are no
reason for an alert.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from typing import Any

from django.conf import settings
from django.db import connections

from settings.monitoring.answers import NOT_SET_UP, Answer, Sample

# A running job whose worker has died waits for another one.
UNFINISHED = """
SELECT kind, count(*) AS count,
       state = 'running' AND heartbeat_at > now() - interval '30 seconds' AS runs
FROM survey_job WHERE ended_at IS NULL GROUP BY 1, 3
"""
SURVEY_DAY = """
SELECT extract(epoch FROM ends_at)::float AS ends_at FROM survey_surveyday
WHERE ended_at IS NULL AND ends_at > now()
"""


def read_jobs() -> Answer:
    # Imported late: the models are not ready when monitoring is loaded.
    from settings.monitoring.dependency_checks import PostgreSQLProbe
    from survey.work.job_kinds import JOB_KINDS

    if connections["default"].vendor != "postgresql":
        return NOT_SET_UP
    with closing(PostgreSQLProbe("default")) as server:
        rows = server.rows(UNFINISHED)
        days = server.rows(SURVEY_DAY)
    queues = {kind.name: kind.queue for kind in JOB_KINDS.values()}
    held = {kind.name for kind in JOB_KINDS.values() if kind.waits} if days else set()
    samples = samples_of(rows, queues, held)
    ends_at = days[0]["ends_at"] if days else 0.0
    samples.append(("survey_day_ends_timestamp_seconds", ends_at, ()))
    return Answer(True, "counted", samples=samples)


def samples_of(
    rows: Iterable[Mapping[str, Any]],
    queues: Mapping[str, str],
    held_kinds: Collection[str] = (),
) -> list[Sample]:
    """Return the samples of unfinished jobs; `queues` maps kinds to queues."""
    from survey.work.jobs import POOLS

    waiting: Counter[str] = Counter()
    running: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for row in rows:
        if queue := queues.get(row["kind"]):
            is_held = not row["runs"] and row["kind"] in held_kinds
            counts = held if is_held else running if row["runs"] else waiting
            counts[queue] += row["count"]
    samples: list[Sample] = []
    for pool in POOLS:
        for queue in pool:
            samples.append(("jobs_waiting", float(waiting[queue]), (queue,)))
            samples.append(("jobs_held", float(held[queue]), (queue,)))
            samples.append(("jobs_running", float(running[queue]), (queue,)))
        # A pool is known by the last of its queues.
        if workers := settings.JOB_WORKERS.get(pool[-1]):
            busy = sum(running[queue] for queue in pool)
            samples.append(("workers_idle", float(max(0, workers - busy)), (pool[-1],)))
    return samples
