from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from types import FrameType
from typing import Any

from celery import Task, current_app
from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import OperationalError, close_old_connections, connections

from survey.work import jobs
from survey.work.job_turns import next_job

log = logging.getLogger(__name__)

# Seconds between two looks at the database's files.
POLL_INTERVAL = 0.5
# Seconds after which the table of jobs is read although nothing was written: a
# worker may have died.
MAX_IDLE = 10.0
# A job stops at its next step. One that takes longer is cut off when this
# process ends, and started again by the next one.
MAX_STOP = 10.0


class Command(BaseCommand):
    help = (
        "Run background jobs and scheduled tasks without RabbitMQ. Long jobs and"
        " e-mails run beside the others. Ends on SIGTERM; unfinished jobs are started"
        " again by the next process."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        over = threading.Event()

        def stop(number: int, frame: FrameType | None) -> None:
            jobs.stop_this_worker()
            over.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        current_app.loader.import_default_modules()
        threads = [
            threading.Thread(
                target=poll,
                args=(over, partial(run_waiting_jobs, pool[0])),
                kwargs={"writes": DatabaseWrites()},
                daemon=True,
            )
            for pool in jobs.POOLS
        ]
        threads.append(
            threading.Thread(
                target=poll, args=(over, Schedule().run_due_tasks), daemon=True
            )
        )
        for thread in threads:
            thread.start()
        over.wait()
        deadline = time.monotonic() + MAX_STOP
        for thread in threads:
            thread.join(max(0, deadline - time.monotonic()))


class DatabaseWrites:
    """Tell whether something was written to SQLite since the last call.

    Reads the times of its files, which takes 10 µs; reading the table of jobs in
    each thread would keep an idle machine awake. Every commit changes the
    write-ahead log, and every checkpoint the database.
    """

    def __init__(self) -> None:
        default = connections["default"]
        name = str(default.settings_dict["NAME"])
        is_sqlite = default.vendor == "sqlite"
        self.paths = (name, f"{name}-wal") if is_sqlite else ()
        self.forget()

    def forget(self) -> None:
        """Return True from the next call."""
        self.seen: list[tuple[int, int]] | None = None
        self.until = 0.0

    def happened(self) -> bool:
        times, now = [times_of(path) for path in self.paths], time.monotonic()
        if times and times == self.seen and now < self.until:
            return False
        self.seen, self.until = times, now + MAX_IDLE
        return True


def times_of(path: str) -> tuple[int, int]:
    """Return when a file was written last, and its size; zeros if there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def poll(
    over: threading.Event,
    act: Callable[[], None],
    *,
    writes: DatabaseWrites | None = None,
) -> None:
    """Call a function again and again, whatever it raises.

    With `writes`, only after something was written, or every ten seconds.
    """
    try:
        while not over.wait(POLL_INTERVAL):
            if writes is not None and not writes.happened():
                continue
            close_old_connections()
            try:
                act()
            except Exception as error:
                if writes is not None:
                    writes.forget()
                if isinstance(error, OperationalError):
                    # SQLite has one writer, which may take a while.
                    log.warning("Waiting for the database: %s", error)
                else:
                    log.exception("background work failed")
    finally:
        connections.close_all()


def run_waiting_jobs(queue: str) -> None:
    """Run as many jobs of the queue's pool as wait now; their users take turns."""
    [pool] = [pool for pool in jobs.POOLS if queue in pool]
    for _ in range(jobs.runnable_jobs(*pool).count()):
        if (pk := next_job(queue)) is not None:
            jobs.run(pk)


class Schedule:
    """Runs the tasks of CELERY_BEAT_SCHEDULE without Celery beat."""

    def __init__(self) -> None:
        self._next = dict.fromkeys(settings.CELERY_BEAT_SCHEDULE, 0.0)

    def run_due_tasks(self) -> None:
        for task in self.due():
            # A failed task is tried again at its next time; the others go on.
            try:
                task()
            except Exception:
                log.exception("%s failed", task.name)

    def due(self) -> Iterator[Task]:
        now = time.monotonic()
        for name, entry in settings.CELERY_BEAT_SCHEDULE.items():
            if now >= self._next[name]:
                self._next[name] = now + entry["schedule"]
                module, function = entry["task"].rsplit(".", 1)
                yield getattr(import_module(module), function)
