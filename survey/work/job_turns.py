"""Let users take turns, so that many jobs of one user do not delay all others.

Exports have a lower limit of their own, in `requested_files.py`.
"""

from __future__ import annotations

from django.db.models import Case, F, OuterRef, Subquery, When
from django.db.models.lookups import IsNull
from django.utils.translation import gettext as _

from accounts.models import User
from survey.models import Job
from survey.work import jobs
from survey.work.job_kinds import JOB_KINDS

# Of one user: cards for each class of a school, ordered one after the other.
MOST_UNFINISHED = 60


class TooManyJobs(Exception):
    """The message tells the user what to do."""


def refuse_many(user: User) -> None:
    """Raise TooManyJobs if many jobs of this user are not done yet."""
    if Job.objects.filter(by=user, ended_at=None).count() >= MOST_UNFINISHED:
        raise TooManyJobs(
            _(
                "You have started %(tasks)s tasks that are not done yet. Wait for some"
                " of them, then try again."
            )
            % {"tasks": MOST_UNFINISHED}
        )


def next_job(queue: str) -> int | None:
    """Return the job whose turn it is for a worker of this queue's pool.

    The most urgent queue comes first, then jobs that a person waits for. Users take
    turns: the first is of the user whose last job started longest ago, so many jobs
    of one user delay another user's job by one job of each worker.
    """
    [pool] = [pool for pool in jobs.POOLS if queue in pool]
    urgency = Case(
        *(When(kind__in=jobs.kinds_of(name), then=n) for n, name in enumerate(pool)),
        default=len(pool),
    )
    started = Job.objects.filter(
        kind__in=jobs.kinds_of(*pool), by=OuterRef("by"), started_at__isnull=False
    ).order_by("-started_at")
    return (
        jobs.runnable_jobs(*pool)
        .annotate(last_turn=Subquery(started.values("started_at")[:1]))
        .order_by(
            urgency,
            IsNull(F("by"), True),
            F("last_turn").asc(nulls_first=True),
            "created_at",
            "pk",
        )
        .values_list("pk", flat=True)
        .first()
    )


def run_next(pk: int) -> None:
    """Run one job of the pool of job `pk`, which is not always this one.

    Each job sends one message, so as many are run as were started.
    """
    kind = JOB_KINDS.get(
        Job.objects.filter(pk=pk).values_list("kind", flat=True).first() or ""
    )
    # Where another worker claims the job first, the turn is the next one's.
    while kind is not None and (chosen := next_job(kind.queue)) is not None:
        if jobs.run(chosen):
            return
