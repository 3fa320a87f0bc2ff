"""Work behind the scenes: started by a page, done by a worker, seen all along.

::

    @job("roster.apply")
    def apply_roster(job: Job, progress: Progress) -> None: ...

    start(apply_roster, subject_id=upload.pk, by=request.user)

A job may be run again from its start at any time: when its worker dies, when
its message is delivered twice. So each function leaves either all it has to
leave, or nothing that a second run minds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, connection, connections, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from accounts.models import User
from survey.models import Job

log = logging.getLogger(__name__)

HEARTBEAT = 1.0
# Without a sign of life for so long, a worker is taken for dead. Longer than
# a stall of the disk, shorter than the patience of whoever looks at the page.
DEAD_AFTER = timedelta(seconds=30)
MOST_ATTEMPTS = 3
WORKER_DIED = (
    "The work was begun three times and never came to its end. Nothing of it was"
    " kept. Start it again, and tell an engineer if that does not help."
)
FAILED = (
    "Something went wrong on our side, and nothing was kept. Start it again, and"
    " tell an engineer if that does not help."
)


class JobRefused(Exception):
    """The job cannot be done; says why to the person who started it."""


class Cancelled(Exception):
    """Somebody asked to stop."""


Run = Callable[[Job, "Progress"], None]
KINDS: dict[str, Run] = {}


# Which are not cancelled: half of what they do helps nobody.
UNSTOPPABLE: set[str] = set()


def job(kind: str, *, stoppable: bool = True) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        KINDS[kind] = run
        if not stoppable:
            UNSTOPPABLE.add(kind)
        run.kind = kind  # type: ignore[attr-defined]
        return run

    return register


def start(run: Run, *, subject_id: int | None = None, by: User | None = None) -> Job:
    """Put a job on the list, and wake a worker once this is committed.

    `run` is a function under `@job`; a worker finds it by its kind, so the
    app's `tasks` imports its module.
    """
    created = Job.objects.create(
        kind=run.kind,  # type: ignore[attr-defined]
        subject_id=subject_id,
        by=by,
    )
    transaction.on_commit(lambda: wake(created.pk))
    return created


def wake(pk: int) -> None:
    """Tell a worker. Where the message is lost, `wake_forgotten` sends it again."""
    from survey.tasks import run_job

    # In the embedded installation one process looks at the table instead.
    if settings.JOBS_BY_MESSAGE:
        try:
            run_job.delay(pk)
        except (OSError, OperationalError):
            log.warning("job %s waits: the message broker is away", pk)


def ask_to_cancel(asked: Job) -> None:
    """Stop it at its next step; what has not begun is over at once."""
    if asked.kind in UNSTOPPABLE:
        return
    now = timezone.now()
    mine = Job.objects.filter(pk=asked.pk, ended_at=None)
    if not mine.filter(state=Job.State.WAITING).update(
        state=Job.State.CANCELLED, ended_at=now, message="Cancelled."
    ):
        mine.update(cancel_asked_at=now)


def runnable() -> QuerySet[Job]:
    """What waits, and what a dead worker left, the oldest first."""
    dead = Q(state=Job.State.RUNNING, heartbeat_at__lt=timezone.now() - DEAD_AFTER)
    return Job.objects.filter(
        Q(state=Job.State.WAITING) | dead, ended_at=None
    ).order_by("created_at", "pk")


def wake_forgotten() -> None:
    """For the time table: what should be running, and nobody runs."""
    patience = timezone.now() - DEAD_AFTER
    for pk in runnable().filter(created_at__lt=patience).values_list("pk", flat=True):
        wake(pk)


def run(pk: int) -> None:
    """Do a job, unless somebody else does. Never raises for what the job does."""
    claimed = _claim(pk)
    if claimed is None:
        return
    if claimed.attempts > MOST_ATTEMPTS:
        _end(claimed, Job.State.FAILED, WORKER_DIED)
        return
    progress = Progress(claimed)
    try:
        with _heartbeat(progress):
            KINDS[claimed.kind](claimed, progress)
    except Cancelled:
        _end(claimed, Job.State.CANCELLED, "Cancelled; nothing of it was kept.")
    except JobRefused as refused:
        _end(claimed, Job.State.FAILED, str(refused))
    except Exception:
        log.exception("job %s failed", claimed.pk)
        _end(claimed, Job.State.FAILED, FAILED)
    else:
        _end(claimed, Job.State.DONE, progress.message, progress)


def _claim(pk: int) -> Job | None:
    now = timezone.now()
    claimed = (
        runnable()
        .filter(pk=pk)
        .update(
            state=Job.State.RUNNING,
            started_at=now,
            heartbeat_at=now,
            attempts=F("attempts") + 1,
        )
    )
    return Job.objects.select_related("by").get(pk=pk) if claimed else None


def _end(
    ended: Job, state: Job.State, message: str, progress: Progress | None = None
) -> None:
    counts = {"done": progress.done, "total": progress.total} if progress else {}
    Job.objects.filter(pk=ended.pk, ended_at=None).update(
        state=state, message=message[:500], ended_at=timezone.now(), **counts
    )


class Progress:
    """What a running job tells; cheap, so it may be told for every row.

    It is written down once a second beside the job, on a connection of its
    own: what the job's transaction has not committed, nobody would see.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.done = 0
        self.total: int | None = None
        self.message = ""
        self.cancel_asked = False

    def says(self, message: str, *, total: int | None = None) -> None:
        """A new step begins. Raises Cancelled."""
        self.message, self.done, self.total = message, 0, total
        self._check()

    def advance(self, count: int = 1) -> None:
        """Raises Cancelled."""
        self.done += count
        self._check()

    def _check(self) -> None:
        if self.cancel_asked:
            raise Cancelled

    def write(self) -> None:
        """Write it down, with a sign of life, and see whether to stop."""
        mine = Job.objects.filter(pk=self.job.pk)
        mine.update(
            done=self.done,
            total=self.total,
            message=self.message[:500],
            heartbeat_at=timezone.now(),
        )
        asked = mine.values_list("cancel_asked_at", flat=True).first()
        self.cancel_asked = asked is not None


@contextmanager
def _heartbeat(progress: Progress) -> Iterator[None]:
    # Inside somebody's transaction (a test's) another connection sees nothing.
    if connection.in_atomic_block:
        progress.write()
        yield
        return
    over = threading.Event()

    def beat() -> None:
        try:
            while not over.wait(HEARTBEAT):
                # A database that is away, or SQLite's one writer: next time.
                try:
                    progress.write()
                except DatabaseError:
                    log.info("the progress of job %s waits", progress.job.pk)
        finally:
            connections.close_all()

    thread = threading.Thread(target=beat, name=f"job-{progress.job.pk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
