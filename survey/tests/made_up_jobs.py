"""Jobs whose work is to make one district, in several ways."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from django.db import transaction

from accounts.models import District
from survey.jobs import JobRefused, Progress, job
from survey.models import Job

# What a test lets happen in the middle; where it runs in a process of its
# own, a file to touch and then to wait there for ever.
meanwhile: list[Callable[[Job, Progress], None]] = []
STOP_AT = "MADE_UP_JOB_STOPS_AT"


def result_of(one: Job) -> str:
    return f"made-by-{one.pk}"


@job("test.make")
def make(one: Job, progress: Progress) -> None:
    """All or nothing, and a second run minds nothing."""
    with transaction.atomic():
        progress.begin_step("Making it", total=2)
        District.objects.update_or_create(
            code=result_of(one), defaults={"name": f"attempt {one.attempts}"}
        )
        progress.advance()
        if path := os.environ.get(STOP_AT):
            with open(path, "w"):
                pass
            time.sleep(60)
        for act in meanwhile:
            act(one, progress)
        progress.advance()
        progress.confirm()


@job("test.careless")
def careless(one: Job, progress: Progress) -> None:
    """The twin: never asks whether it is still the one."""
    with transaction.atomic():
        District.objects.update_or_create(
            code=result_of(one), defaults={"name": f"attempt {one.attempts}"}
        )
        for act in meanwhile:
            act(one, progress)


@job("test.long", long=True)
def make_slowly(one: Job, progress: Progress) -> None:
    make(one, progress)


@job("test.refuse")
def refuse(one: Job, progress: Progress) -> None:
    raise JobRefused("Row 3 has no school. Write one, and upload the file again.")
