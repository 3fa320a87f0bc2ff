"""Background jobs: started by a page, run by a worker, with stored progress.

::

    @job("roster.apply")
    def apply_roster(job: Job, progress: Progress) -> None: ...

    @job("export.make", long=True)
    def make_export(job: Job, progress: Progress) -> None: ...

    start(apply_roster, subject_id=upload.pk, by=request.user)

A job may be run again from its start at any time: when its worker dies, or
when its message is delivered twice. So each function must be idempotent. A
function that writes in a transaction ends it with `progress.confirm()`.

The modules that declare jobs are imported by `survey.tasks` and
`reports.tasks`, which the apps load when they are ready.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

from amqp.exceptions import AMQPError
from celery import current_app, signature
from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from kombu.exceptions import OperationalError as BrokerError

from accounts.language import language_of
from accounts.models import User
from accounts.retry_delays import RetryDelays
from accounts.row_leases import RowLease
from settings.monitoring import stores  # noqa: TID251
from survey.models import Job
from survey.work import survey_day
from survey.work.files_away import FilesAway
from survey.work.job_kinds import JOB_KINDS, JobKind

log = logging.getLogger(__name__)

# Seconds between two writes of a running job's progress.
HEARTBEAT = 1.0
# A worker without a heartbeat for this long counts as dead. Longer than a
# stall of the disk, shorter than the patience of a person at the page.
DEAD_AFTER = timedelta(seconds=30)
LEASE = RowLease("heartbeat_at", duration=DEAD_AFTER, shows_renewal=True)
DELAYS = RetryDelays(first=timedelta(seconds=2), attempts=3)
# While a database is away, as a replica that is set up anew, attempts go on for half
# an hour. The first delays are short: pgbouncer refuses the first client after an
# outage too.
DELAYS_WHILE_AWAY = replace(DELAYS, attempts=11)
# During a deploy, old workers run together with new pages for a minute. After an hour
# no worker will ever know a kind that none of them knows now.
UNKNOWN_KIND_AFTER = timedelta(hours=1)
# Jobs of a queue whose messages are sent again every quarter of a minute: ten, or
# more than the workers of its pool can end until the next time. A window of 900
# feeds whose messages the broker lost is woken within a minute by 16 workers.
MAX_WOKEN = 10
MAX_WOKEN_PER_WORKER = 20
# Seconds after which workers ignore such a message. Otherwise those of a long queue,
# sent again and again, would pile up.
WOKEN_FOR = 30
# How a job ended is written within 25 seconds: as long as a failover takes.
WRITE_DELAYS = RetryDelays(first=timedelta(milliseconds=100), attempts=9)

# The names of Celery's queues. Long jobs have a queue and workers of their
# own, so that a job of twenty minutes never delays one of a second. E-mails are sent
# for hours, and neither wait for exports nor delay them. Downloads wait for other
# servers, many at a time; what they bring is scanned by processes, one per core.
QUICK, LONG, EMAILS = "quick", "long", "emails"
DOWNLOADS, SCANS, CONFIRMED = "downloads", "scans", "confirmed"
# Workers of a pool serve all of its queues, the most urgent first: idle ones take
# jobs from the next queue.
POOLS = ((QUICK,), (CONFIRMED, LONG, SCANS), (EMAILS,), (DOWNLOADS,))
QUEUES = tuple(queue for pool in POOLS for queue in pool)
RUN_JOB = "survey.tasks.run_job"

WORKER_DIED = gettext_noop(
    "This was started three times and never finished. Nothing was saved."
    " Start it again, and contact your engineers if it fails again."
)
FAILED = gettext_noop(
    "Something went wrong on our side, and nothing was saved. Start it again,"
    " and contact your engineers if it fails again."
)
UNKNOWN_KIND = gettext_noop(
    "The software was updated in the meantime and can no longer do this."
    " Nothing was changed. Start it again from its page."
)
RETRYING = gettext_noop("The database was unavailable. This starts again by itself.")
RETRYING_FILES = gettext_noop(
    "The storage of files was unavailable. This starts again by itself."
)


class JobRefused(Exception):
    """The job cannot be done; the message tells the person who started it why."""


class Cancelled(Exception):
    """The job was asked to stop."""


class TakenOver(Exception):
    """Another worker runs the job, because this one seemed dead."""


class Interrupted(Exception):
    """This worker is shutting down; another one starts the job again."""


# After these a job is run again: by another worker, or when the database is back.
RUN_AGAIN = (Interrupted, TakenOver, OperationalError, InterfaceError)

JobFunction = Callable[[Job, "Progress"], None]


_stopping = threading.Event()


def job(
    name: str,
    *,
    long: bool = False,
    queue: str = "",
    stoppable: bool = True,
    waits: bool = False,
) -> Callable[[JobFunction], JobKind]:
    """Register a function as a kind of job.

    `long` is for jobs that may take minutes: they wait only for each other.
    `queue` is for jobs with workers of their own. On a survey day no worker takes
    those that `waits`.
    """

    def register(run: JobFunction) -> JobKind:
        in_queue = queue or (LONG if long else QUICK)
        kind = JobKind(name, run, in_queue, stoppable, waits)
        JOB_KINDS[name] = kind
        return kind

    return register


def start(
    kind: JobKind, *, subject_id: int | None = None, by: User | None = None
) -> Job:
    """Store a job, and wake a worker when the transaction has committed."""
    created = Job.objects.create(kind=kind.name, subject_id=subject_id, by=by)
    transaction.on_commit(lambda: wake(created.pk, kind.queue))
    return created


def wake(pk: int, queue: str = QUICK, *, expires: int | None = None) -> None:
    """Send a worker the message to run a job. `wake_forgotten` sends it again."""
    # The embedded installation has no broker: one process polls the table.
    if not settings.JOBS_BY_MESSAGE:
        return
    try:
        # By name: `survey.tasks` imports this module. In eager mode the
        # signature runs the registered task at once.
        message = signature(RUN_JOB, (pk,), app=current_app)
        with stores.timed(stores.RABBITMQ):
            message.apply_async(queue=queue, expires=expires)
    except (OSError, BrokerError, AMQPError):
        log.warning("job %s waits: the message broker is away", pk)


def request_cancel(job: Job) -> bool:
    """Cancel a waiting job at once, a running one at its next step.

    Returns False if there was nothing to stop or it was requested before.
    """
    if not job.is_stoppable:
        return False
    unfinished = Job.objects.filter(pk=job.pk, ended_at=None)
    waiting = unfinished.filter(state=Job.State.WAITING)
    return bool(
        waiting.update(
            state=Job.State.CANCELLED, ended_at=Now(), message=_("Cancelled.")
        )
        or unfinished.filter(cancel_asked_at=None).update(cancel_asked_at=Now())
    )


def kinds_of(*queues: str) -> list[str]:
    return [kind.name for kind in JOB_KINDS.values() if kind.queue in queues]


def runnable_jobs(*queues: str) -> QuerySet[Job]:
    """Waiting jobs and jobs of dead workers, oldest first, of known kinds.

    Without those that wait for the end of a survey day.
    """
    kinds = kinds_of(*(queues or QUEUES))
    waiting_kinds = [name for name in kinds if JOB_KINDS[name].waits]
    may_run = ~Q(kind__in=waiting_kinds) | survey_day.is_off()
    unfinished = Job.objects.filter(LEASE.is_free, ended_at=None, kind__in=kinds)
    return unfinished.filter(may_run).order_by("created_at", "pk")


def wake_forgotten() -> None:
    """Send the messages of runnable jobs again; fail old jobs of unknown kinds."""
    survey_day.refresh()
    old = Job.objects.filter(ended_at=None, created_at__lt=Now() - UNKNOWN_KIND_AFTER)
    old.exclude(kind__in=JOB_KINDS).update(
        state=Job.State.FAILED, ended_at=Now(), message=_(UNKNOWN_KIND)
    )
    for pool in POOLS:
        workers = settings.JOB_WORKERS.get(pool[-1], 0)
        most = max(MAX_WOKEN, MAX_WOKEN_PER_WORKER * workers)
        for queue in pool:
            # What was attempted has used up its message.
            forgotten = runnable_jobs(queue).filter(
                Q(created_at__lt=Now() - DEAD_AFTER) | Q(attempts__gt=0)
            )
            for pk in forgotten.values_list("pk", flat=True)[:most]:
                wake(pk, queue, expires=WOKEN_FOR)


def stop_this_worker() -> None:
    """Stop this process's jobs at their next step, so that they wait again."""
    _stopping.set()


def run(pk: int) -> bool:
    """Run a job, and return False if another worker does or it can't be run.

    Never raises the job's errors.
    """
    waiting = _claim(pk, Job.State.WAITING)
    claimed = waiting or _claim(pk, Job.State.RUNNING)
    if claimed is None:
        return False
    # What a job stores is read first by the person who asked for it.
    with translation.override(language_of(claimed.by)):
        if waiting is None and claimed.attempts > DELAYS.attempts:
            _end(claimed, Job.State.FAILED, _(WORKER_DIED))
        else:
            _run_claimed(claimed)
    return True


def _run_claimed(claimed: Job) -> None:
    progress = Progress(claimed)
    try:
        with _heartbeat(progress):
            progress.check()
            JOB_KINDS[claimed.kind].run(claimed, progress)
    except TakenOver:
        log.warning("job %s: another worker has taken it over", claimed.pk)
    except Interrupted:
        _put_back(claimed, message="", heartbeat_at=None, attempts=claimed.attempts - 1)
    except Cancelled:
        _end(claimed, Job.State.CANCELLED, _("Cancelled. Nothing was saved."))
    except JobRefused as refused:
        _end(claimed, Job.State.FAILED, str(refused))
    except Exception as error:
        log.exception("job %s failed", claimed.pk)
        # A failover, a conflict with the replica's replay, SQLite's writer.
        is_passing = isinstance(error, OperationalError | InterfaceError)
        delays = DELAYS_WHILE_AWAY if _is_away(error) else DELAYS
        if is_passing and (delay := delays.after(claimed.attempts)):
            reason = RETRYING_FILES if isinstance(error, FilesAway) else RETRYING
            _put_back(claimed, message=_(reason), **LEASE.ends_in(delay))
        else:
            _end(claimed, Job.State.FAILED, _(FAILED))
    else:
        _end(claimed, Job.State.DONE, progress.message, progress)


def _is_away(error: Exception) -> bool:
    """Tell a server that cannot be reached from one that ended the statement."""
    code = getattr(error.__cause__, "pgcode", None)
    # Connection exceptions, also those of pgbouncer; shutdown, crash, starting up.
    return code is None or code.startswith(("08", "57P"))


@transaction.atomic
def _claim(pk: int, state: Job.State) -> Job | None:
    # In one transaction, so that the attempt read is the attempt written.
    claimable = runnable_jobs().filter(pk=pk, state=state)
    if LEASE.take(claimable, state=Job.State.RUNNING, started_at=Now()):
        return Job.objects.select_related("by").get(pk=pk)
    return None


def _attempt(job: Job) -> QuerySet[Job]:
    """Return the job's row as long as this attempt is the current one."""
    return Job.objects.filter(pk=job.pk, state=Job.State.RUNNING, attempts=job.attempts)


def _end(
    job: Job, state: Job.State, message: str, progress: Progress | None = None
) -> None:
    counts = {"done": progress.done, "total": progress.total} if progress else {}
    _write_with_retries(
        lambda: _attempt(job).update(
            state=state, message=message[:500], ended_at=Now(), **counts
        )
    )


def _put_back(job: Job, **changes: object) -> None:
    _write_with_retries(
        lambda: _attempt(job).update(
            state=Job.State.WAITING, done=0, total=None, **changes
        )
    )


def _write_with_retries(write: Callable[[], int]) -> None:
    # The outcome must not be lost because the database is away for a moment.
    def may_retry(error: Exception) -> bool:
        if connection.in_atomic_block:
            return False
        connection.close_if_unusable_or_obsolete()
        return isinstance(error, OperationalError | InterfaceError)

    WRITE_DELAYS.call(write, may_retry=may_retry)


class Progress:
    """Progress that a running job reports; cheap enough to call for every row.

    It is stored once a second, on a connection of its own: other connections
    cannot see what the job's transaction has not committed.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.done = 0
        self.total: int | None = None
        self.message = ""
        self.cancel_asked = job.cancel_asked_at is not None
        self.taken_over = False

    def begin_step(self, message: str, *, total: int | None = None) -> None:
        """Show a new step and count from zero. Raises what `check` raises."""
        self.message, self.done, self.total = message, 0, total
        self.check()

    def advance(self, count: int = 1) -> None:
        """Count rows that are done. Raises what `check` raises."""
        self.done += count
        self.check()

    def check(self) -> None:
        """Raise Cancelled, TakenOver or Interrupted; jobs let them pass."""
        if self.taken_over:
            raise TakenOver
        if self.cancel_asked:
            raise Cancelled
        if _stopping.is_set():
            raise Interrupted

    def confirm(self) -> None:
        """Lock the job's row, as the last statement of the job's transaction.

        Without the lock, a worker that was suspended could overwrite the
        result of the worker that took the job over. A request to cancel comes
        too late afterwards, so nothing behind the commit may call `check`.
        Raises TakenOver and Cancelled.
        """
        current = _attempt(self.job).select_for_update().first()
        if current is None:
            raise TakenOver
        if current.cancel_asked_at is not None:
            raise Cancelled

    def write(self) -> None:
        """Store progress and heartbeat, and read whether to stop."""
        attempt = _attempt(self.job)
        written = attempt.update(
            done=self.done,
            total=self.total,
            message=self.message[:500],
            **LEASE.ends_in(LEASE.duration),
        )
        self.taken_over = not written
        cancel_asked_at = attempt.values_list("cancel_asked_at", flat=True).first()
        self.cancel_asked = self.cancel_asked or cancel_asked_at is not None


@contextmanager
def _heartbeat(progress: Progress) -> Iterator[None]:
    # Another connection could not see the rows of a test's transaction.
    if connection.in_atomic_block:
        progress.write()
        yield
        return
    over = threading.Event()

    def write_every_second() -> None:
        try:
            while not over.wait(HEARTBEAT):
                # The database is away, or SQLite's only writer is busy: the
                # next write makes up for it.
                try:
                    progress.write()
                except DatabaseError:
                    log.info("the progress of job %s waits", progress.job.pk)
                    connection.close_if_unusable_or_obsolete()
        finally:
            connections.close_all()

    thread = threading.Thread(
        target=write_every_second, name=f"job-{progress.job.pk}", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        # Its write may hang. A write that arrives late finds the job ended,
        # and changes nothing.
        thread.join(HEARTBEAT)
