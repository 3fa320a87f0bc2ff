"""The registry of job kinds, which both the `Job` model and `survey.work.jobs` read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobKind:
    """A function that does jobs, registered under a name by `survey.work.jobs.job`."""

    name: str
    # Takes a Job and its Progress.
    run: Callable[..., None]
    queue: str
    # Some jobs do harm when they are half done.
    is_stoppable: bool = True
    # Whether it can wait for the end of a survey day.
    waits: bool = False

    def __call__(self, *args: object) -> None:
        self.run(*args)


JOB_KINDS: dict[str, JobKind] = {}
