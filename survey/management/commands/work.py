from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from types import FrameType
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import OperationalError, close_old_connections

from survey import jobs

LOOK_EVERY = 0.5


class Command(BaseCommand):
    help = (
        "Do the work behind the scenes, where there is no RabbitMQ: the jobs on the"
        " list, one after the other, and the time table. Ends on SIGTERM."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        over = threading.Event()

        def stop(number: int, frame: FrameType | None) -> None:
            over.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        current_app.loader.import_default_modules()
        times = TimeTable()
        while not over.wait(LOOK_EVERY):
            close_old_connections()
            # SQLite has one writer, who may take a while.
            try:
                work_off(times)
            except OperationalError as error:
                self.stderr.write(f"Waiting for the database: {error}")


def work_off(times: TimeTable) -> None:
    """What waits, then what is due."""
    for pk in list(jobs.runnable().values_list("pk", flat=True)):
        jobs.run(pk)
    for task in times.due():
        task()


class TimeTable:
    """Celery's own time table, for who has no beat: names, and seconds."""

    def __init__(self) -> None:
        self._next = dict.fromkeys(settings.CELERY_BEAT_SCHEDULE, 0.0)

    def due(self) -> Iterator[Any]:
        now = time.monotonic()
        for name, entry in settings.CELERY_BEAT_SCHEDULE.items():
            if now >= self._next[name]:
                self._next[name] = now + entry["schedule"]
                module, function = entry["task"].rsplit(".", 1)
                yield getattr(import_module(module), function)
