"""Work behind the scenes: started by a page, done by a worker, seen all along.

::

    @job("roster.apply")
    def apply_roster(job: Job, progress: Progress) -> None: ...

    @job("export.make", long=True)
    def make_export(job: Job, progress: Progress) -> None: ...

    start(apply_roster, subject_id=upload.pk, by=request.user)

A job may be run again from its start at any time: when its worker dies, when
its message is delivered twice. So each function leaves either all it has to
leave, or nothing that a second run minds. One that writes in a transaction
ends it with `progress.confirm()`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from amqp.exceptions import AMQPError
from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

from accounts.models import User
from survey.models import Job

log = logging.getLogger(__name__)

HEARTBEAT = 1.0
# Without a sign of life for so long, a worker is taken for dead. Longer than
# a stall of the disk, shorter than the patience of whoever looks at the page.
DEAD_AFTER = timedelta(seconds=30)
MOST_ATTEMPTS = 3
# A deploy has old workers beside new pages for a minute; after an hour nobody
# is left who will ever know this kind of job.
UNKNOWN_FOR = timedelta(hours=1)
# At a time: those behind them have their turn when these are done.
MOST_WOKEN = 10
# Between tries to write down how a job ended: as long as a failover takes.
PATIENCE = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)

# Celery's. A job of twenty minutes never stands before one of a second.
QUICK, LONG = "quick", "long"

WORKER_DIED = (
    "The work was begun three times and never came to its end. Nothing of it was"
    " kept. Start it again, and tell an engineer if that does not help."
)
FAILED = (
    "Something went wrong on our side, and nothing was kept. Start it again, and"
    " tell an engineer if that does not help."
)
UNKNOWN = (
    "The software was changed meanwhile, and this work is no longer done this way."
    " Nothing was changed. Start it again from its page."
)
TRIED_AGAIN = "The database was away for a moment; this is begun again."


class JobRefused(Exception):
    """The job cannot be done; says why to the person who started it."""


class Cancelled(Exception):
    """Somebody asked to stop."""


class TakenOver(Exception):
    """Another worker does it, for this one gave no sign of life for too long."""


class Interrupted(Exception):
    """This worker ends; another one begins the job again."""


Run = Callable[[Job, "Progress"], None]


@dataclass(frozen=True, slots=True)
class Kind:
    run: Run
    queue: str
    # Half of what some do helps nobody.
    is_stoppable: bool = True


KINDS: dict[str, Kind] = {}
_stopping = threading.Event()


def job(
    kind: str, *, long: bool = False, stoppable: bool = True
) -> Callable[[Run], Run]:
    """`long`: it may take minutes, and waits for others of its sort only."""

    def register(run: Run) -> Run:
        KINDS[kind] = Kind(run, LONG if long else QUICK, stoppable)
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
    transaction.on_commit(lambda: wake(created.pk, queue_of(created.kind)))
    return created


def queue_of(kind: str) -> str:
    return KINDS[kind].queue if kind in KINDS else QUICK


def wake(pk: int, queue: str = QUICK) -> None:
    """Tell a worker. Where the message is lost, `wake_forgotten` sends it again."""
    from survey.tasks import run_job

    # In the embedded installation one process looks at the table instead.
    if settings.JOBS_BY_MESSAGE:
        try:
            run_job.apply_async((pk,), queue=queue)
        except (OSError, BrokerError, AMQPError):
            log.warning("job %s waits: the message broker is away", pk)


def ask_to_cancel(asked: Job) -> bool:
    """Stop it at its next step; what has not begun is over at once.

    Whether there was something to stop, of which nobody had asked it yet.
    """
    kind = KINDS.get(asked.kind)
    if kind and not kind.is_stoppable:
        return False
    now = timezone.now()
    mine = Job.objects.filter(pk=asked.pk, ended_at=None)
    waiting = mine.filter(state=Job.State.WAITING)
    return bool(
        waiting.update(state=Job.State.CANCELLED, ended_at=now, message="Cancelled.")
        or mine.filter(cancel_asked_at=None).update(cancel_asked_at=now)
    )


def runnable(queue: str | None = None) -> QuerySet[Job]:
    """What waits, and what a dead worker left, the oldest first.

    Of the kinds that this release knows.
    """
    kinds = [name for name, kind in KINDS.items() if queue in (None, kind.queue)]
    dead = Q(state=Job.State.RUNNING, heartbeat_at__lt=timezone.now() - DEAD_AFTER)
    return Job.objects.filter(
        Q(state=Job.State.WAITING) | dead, ended_at=None, kind__in=kinds
    ).order_by("created_at", "pk")


def wake_forgotten() -> None:
    """For the time table: what should be running, and nobody runs."""
    now = timezone.now()
    Job.objects.filter(ended_at=None, created_at__lt=now - UNKNOWN_FOR).exclude(
        kind__in=KINDS
    ).update(state=Job.State.FAILED, ended_at=now, message=UNKNOWN)
    for queue in (QUICK, LONG):
        forgotten = runnable(queue).filter(created_at__lt=now - DEAD_AFTER)
        for pk in forgotten.values_list("pk", flat=True)[:MOST_WOKEN]:
            wake(pk, queue)


def stop_here() -> None:
    """This process ends: its jobs stop at their next step, and wait again."""
    _stopping.set()


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
            progress.check()
            KINDS[claimed.kind].run(claimed, progress)
    except TakenOver:
        log.warning("job %s: another worker has taken it over", claimed.pk)
    except Interrupted:
        _put_back(claimed, message="", attempts=claimed.attempts - 1)
    except Cancelled:
        _end(claimed, Job.State.CANCELLED, "Cancelled; nothing of it was kept.")
    except JobRefused as refused:
        _end(claimed, Job.State.FAILED, str(refused))
    except Exception as error:
        log.exception("job %s failed", claimed.pk)
        # A failover, a conflict with the replica's replay, SQLite's writer.
        passing = isinstance(error, OperationalError | InterfaceError)
        if passing and claimed.attempts < MOST_ATTEMPTS:
            _put_back(claimed, message=TRIED_AGAIN)
        else:
            _end(claimed, Job.State.FAILED, FAILED)
    else:
        _end(claimed, Job.State.DONE, progress.message, progress)


@transaction.atomic
def _claim(pk: int) -> Job | None:
    # In one transaction: the attempt that is read is the one that was made.
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


def _attempt(job: Job) -> QuerySet[Job]:
    """The row, as long as nobody else has ended it or taken it over."""
    return Job.objects.filter(pk=job.pk, state=Job.State.RUNNING, attempts=job.attempts)


def _end(
    ended: Job, state: Job.State, message: str, progress: Progress | None = None
) -> None:
    counts = {"done": progress.done, "total": progress.total} if progress else {}
    _insist(
        lambda: _attempt(ended).update(
            state=state, message=message[:500], ended_at=timezone.now(), **counts
        )
    )


def _put_back(job: Job, **changes: object) -> None:
    _insist(
        lambda: _attempt(job).update(
            state=Job.State.WAITING, heartbeat_at=None, done=0, total=None, **changes
        )
    )


def _insist(write: Callable[[], int]) -> None:
    """How it ended is not lost because the database is away for a moment."""
    for pause in PATIENCE:
        try:
            write()
            return
        except (OperationalError, InterfaceError):
            if connection.in_atomic_block:
                raise
            connection.close_if_unusable_or_obsolete()
            time.sleep(pause)
    write()


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
        self.cancel_asked = job.cancel_asked_at is not None
        self.taken_over = False

    def says(self, message: str, *, total: int | None = None) -> None:
        """A new step begins. Raises what `check` raises."""
        self.message, self.done, self.total = message, 0, total
        self.check()

    def advance(self, count: int = 1) -> None:
        """Raises what `check` raises."""
        self.done += count
        self.check()

    def check(self) -> None:
        """Raises Cancelled, TakenOver or Interrupted: let them pass."""
        if self.taken_over:
            raise TakenOver
        if self.cancel_asked:
            raise Cancelled
        if _stopping.is_set():
            raise Interrupted

    def confirm(self) -> None:
        """Last in the job's transaction: the job is still this worker's.

        And stays so until the commit, for its row is locked. Without it, a
        worker that stood still could commit what another has done meanwhile.
        Whoever asks to stop it afterwards is too late, so nothing behind the
        commit may call `check`. Raises TakenOver and Cancelled.
        """
        mine = _attempt(self.job).select_for_update().first()
        if mine is None:
            raise TakenOver
        if mine.cancel_asked_at is not None:
            raise Cancelled

    def write(self) -> None:
        """Write it down, with a sign of life, and see whether to stop."""
        mine = _attempt(self.job)
        written = mine.update(
            done=self.done,
            total=self.total,
            message=self.message[:500],
            heartbeat_at=timezone.now(),
        )
        self.taken_over = not written
        asked = mine.values_list("cancel_asked_at", flat=True).first()
        self.cancel_asked = self.cancel_asked or asked is not None


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
                    connection.close_if_unusable_or_obsolete()
        finally:
            connections.close_all()

    thread = threading.Thread(target=beat, name=f"job-{progress.job.pk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        # It may stand in a write that does not come back. What it writes late
        # finds the job ended, and changes nothing.
        thread.join(HEARTBEAT)
