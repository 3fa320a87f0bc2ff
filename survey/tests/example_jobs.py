"""Jobs for tests: each creates one district, in a different way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from django.db import transaction

from accounts.models import District
from survey.models import Job
from survey.work.jobs import JobRefused, Progress, job

# Functions that a test runs in the middle of a job.
in_the_middle: list[Callable[[Job, Progress], None]] = []
# An environment variable for a job in a process of its own: the file that it
# creates in the middle, before it waits for a minute.
STOP_AT = "EXAMPLE_JOB_STOPS_AT"


def district_code(job: Job) -> str:
    return f"made-by-{job.pk}"


@job("test.make")
def make(job: Job, progress: Progress) -> None:
    """Create the district in a transaction, so that the job can be repeated."""
    with transaction.atomic():
        progress.begin_step("Making it", total=2)
        District.objects.update_or_create(
            code=district_code(job), defaults={"name": f"attempt {job.attempts}"}
        )
        progress.advance()
        if path := os.environ.get(STOP_AT):
            with open(path, "w"):
                pass
            time.sleep(60)
        for act in in_the_middle:
            act(job, progress)
        progress.advance()
        progress.confirm()


@job("test.careless")
def careless(job: Job, progress: Progress) -> None:
    """The twin: never confirms that the job is still its own."""
    with transaction.atomic():
        District.objects.update_or_create(
            code=district_code(job), defaults={"name": f"attempt {job.attempts}"}
        )
        for act in in_the_middle:
            act(job, progress)


@job("test.long", long=True)
def make_slowly(job: Job, progress: Progress) -> None:
    make(job, progress)


@job("test.refuse")
def refuse(job: Job, progress: Progress) -> None:
    raise JobRefused("Row 3 has no school. Write one, and upload the file again.")


@job("test.wait", long=True, waits=True)
def make_after_survey_days(job: Job, progress: Progress) -> None:
    make(job, progress)
