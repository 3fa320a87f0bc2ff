from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from types import FrameType
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import OperationalError, close_old_connections, connections

from survey import jobs

log = logging.getLogger(__name__)

LOOK_EVERY = 0.5
# A job stops at its next step; one that comes to none is ended with this
# process, and begun again by the next one.
LONGEST_STOP = 10.0


class Command(BaseCommand):
    help = (
        "Do the work behind the scenes, where there is no RabbitMQ: the jobs on the"
        " list, and the time table. Long jobs go on beside the others. Ends on"
        " SIGTERM; what it was at is begun again by the next one."
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
            threading.Thread(target=go_on, args=(over, act), daemon=True)
            for act in (quick_jobs, long_jobs, TimeTable().work_off)
        ]
        for thread in threads:
            thread.start()
        over.wait()
        deadline = time.monotonic() + LONGEST_STOP
        for thread in threads:
            thread.join(max(0, deadline - time.monotonic()))


def go_on(over: threading.Event, act: Callable[[], None]) -> None:
    try:
        while not over.wait(LOOK_EVERY):
            close_old_connections()
            try:
                act()
            except OperationalError as error:
                # SQLite has one writer, who may take a while.
                log.warning("Waiting for the database: %s", error)
            except Exception:
                log.exception("work behind the scenes")
    finally:
        connections.close_all()


def quick_jobs() -> None:
    work_off(jobs.QUICK)


def long_jobs() -> None:
    work_off(jobs.LONG)


def work_off(queue: str) -> None:
    """What waits now, the oldest first."""
    for pk in list(jobs.runnable_jobs(queue).values_list("pk", flat=True)):
        jobs.run(pk)


class TimeTable:
    """Celery's own time table, for who has no beat: names, and seconds."""

    def __init__(self) -> None:
        self._next = dict.fromkeys(settings.CELERY_BEAT_SCHEDULE, 0.0)

    def work_off(self) -> None:
        for task in self.due():
            # One that fails is tried again at its next time; the others go on.
            try:
                task()
            except Exception:
                log.exception("%s failed", task.name)

    def due(self) -> Iterator[Any]:
        now = time.monotonic()
        for name, entry in settings.CELERY_BEAT_SCHEDULE.items():
            if now >= self._next[name]:
                self._next[name] = now + entry["schedule"]
                module, function = entry["task"].rsplit(".", 1)
                yield getattr(import_module(module), function)
