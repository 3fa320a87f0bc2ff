"""Background jobs: progress, cancelling, dead workers, a missing broker."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from amqp.exceptions import AccessRefused
from django.conf import settings as project
from django.db import (
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
    transaction,
)
from django.db.models import Value
from django.utils import timezone

from accounts import row_leases
from accounts.models import District
from settings.tests.patience import patience
from survey import tasks
from survey.management.commands.work import (
    DatabaseWrites,
    Schedule,
    poll,
    run_waiting_jobs,
)
from survey.models import Job
from survey.tests import example_jobs
from survey.tests.example_jobs import careless, district_code, make, make_slowly, refuse
from survey.work import jobs
from survey.work.jobs import (
    JOB_KINDS,
    request_cancel,
    runnable_jobs,
    start,
    wake_forgotten,
)

pytestmark = pytest.mark.django_db(transaction=True)

on_postgresql = pytest.mark.skipif(
    not project.SERVERS,
    reason="SQLite's readers wait for no writer, and its writers do",
)


@pytest.fixture(autouse=True)
def reset_jobs(monkeypatch):
    monkeypatch.setattr(jobs, "_stopping", threading.Event())
    yield
    example_jobs.in_the_middle.clear()


@pytest.fixture
def by_hand(settings):
    """Send no messages: the test runs the jobs itself."""
    settings.JOBS_BY_MESSAGE = False


def in_the_middle(act):
    example_jobs.in_the_middle.append(act)


def reload(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def results_of(job: Job) -> list[str]:
    districts = District.objects.filter(code=district_code(job))
    return list(districts.values_list("name", flat=True))


def in_other_connection(act):
    """Run a function in a thread, and so on a connection of its own."""
    outcomes = []

    def do() -> None:
        try:
            outcomes.append(act())
        except Exception as error:
            outcomes.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=do)
    thread.start()
    thread.join()
    if isinstance(outcomes[0], Exception):
        raise outcomes[0]
    return outcomes[0]


def set_heartbeat_age(job: Job, seconds: float) -> None:
    Job.objects.filter(pk=job.pk).update(
        heartbeat_at=timezone.now() - timedelta(seconds=seconds)
    )


def test_a_job_is_sent_on_commit_and_runs_once():
    with transaction.atomic():
        job = start(make, subject_id=7)
        assert reload(job).state == Job.State.WAITING
        assert results_of(job) == []

    job = reload(job)
    assert (job.state, job.message) == (Job.State.DONE, "Making it")
    assert (job.done, job.total, job.attempts) == (2, 2, 1)
    assert job.started_at <= job.ended_at
    assert results_of(job) == ["attempt 1"]

    # The message is delivered twice.
    tasks.run_job(job.pk)
    assert reload(job).attempts == 1


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_message_is_repeated_if_the_database_is_away_when_it_arrives(
    monkeypatch, error
):
    errors = [error("server closed the connection"), error("no connection")]
    run = []

    def run_next(pk):
        if errors:
            raise errors.pop()
        run.append(pk)

    monkeypatch.setattr(tasks, "run_next", run_next)
    tasks.run_job.apply((7,))
    assert run == [7]


def test_a_message_is_not_repeated_after_another_error(monkeypatch):
    run = []

    def run_next(pk):
        run.append(pk)
        raise RuntimeError

    monkeypatch.setattr(tasks, "run_next", run_next)
    assert tasks.run_job.apply((7,)).failed()
    assert run == [7]


def test_rolled_back_jobs_are_not_sent(monkeypatch):
    woken = []
    monkeypatch.setattr(jobs, "wake", lambda *given: woken.append(given))
    with transaction.atomic():
        start(make)
        transaction.set_rollback(True)
    assert (woken, Job.objects.count()) == ([], 0)
    # The twin: it is committed.
    start(make_slowly)
    assert woken == [(Job.objects.get().pk, jobs.LONG)]


def test_two_workers_run_the_same_job_once(by_hand):
    job = start(make)
    times = []
    in_the_middle(lambda running, progress: times.append(running.attempts))
    together = threading.Barrier(2)

    def work() -> None:
        together.wait()
        jobs.run(job.pk)
        connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert times == [1]
    assert reload(job).attempts == 1
    assert reload(job).state == Job.State.DONE


@on_postgresql
def test_progress_is_visible_during_the_jobs_transaction(by_hand, monkeypatch):
    monkeypatch.setattr(jobs, "HEARTBEAT", 0.02)
    job = start(make)
    seen = []

    def look(running, progress):
        deadline = time.monotonic() + patience(5)
        while not seen and time.monotonic() < deadline:
            row = in_other_connection(lambda: reload(job))
            if row.done:
                seen.append((row.message, row.done, row.total))
        assert in_other_connection(lambda: results_of(job)) == []

    in_the_middle(look)
    jobs.run(job.pk)

    assert seen == [("Making it", 1, 2)]
    assert results_of(job) == ["attempt 1"]


def test_on_sqlite_the_heartbeat_does_not_block_the_job(by_hand, monkeypatch):
    monkeypatch.setattr(jobs, "HEARTBEAT", 0.02)
    job = start(make)
    in_the_middle(lambda running, progress: time.sleep(0.2))
    began = time.monotonic()
    jobs.run(job.pk)
    assert time.monotonic() - began < patience(2)
    assert reload(job).state == Job.State.DONE


def test_waiting_jobs_are_cancelled_at_once(by_hand):
    job = start(make)
    request_cancel(job)

    assert reload(job).state == Job.State.CANCELLED
    jobs.run(job.pk)
    assert results_of(job) == []
    # A job that has ended does not change.
    request_cancel(job)
    assert reload(job).cancel_asked_at is None


@on_postgresql
def test_running_jobs_are_cancelled_at_their_next_step(by_hand, monkeypatch):
    monkeypatch.setattr(jobs, "HEARTBEAT", 0.02)
    job = start(make)

    def cancel(running, progress):
        in_other_connection(lambda: request_cancel(job))
        deadline = time.monotonic() + patience(5)
        while not progress.cancel_asked and time.monotonic() < deadline:
            time.sleep(0.01)

    in_the_middle(cancel)
    jobs.run(job.pk)

    assert reload(job).state == Job.State.CANCELLED
    assert reload(job).message == "Cancelled. Nothing was saved."
    assert results_of(job) == []


def test_a_cancelled_job_is_not_repeated_after_its_worker_died(by_hand):
    job = start(make)
    Job.objects.filter(pk=job.pk).update(
        state=Job.State.RUNNING, attempts=1, cancel_asked_at=timezone.now()
    )
    set_heartbeat_age(job, 31)

    jobs.run(job.pk)

    assert reload(job).state == Job.State.CANCELLED
    assert results_of(job) == []


def test_a_refused_job_shows_the_reason(by_hand):
    job = start(refuse)
    jobs.run(job.pk)
    job = reload(job)
    assert (job.state, job.attempts) == (Job.State.FAILED, 1)
    assert job.message.startswith("Row 3 has no school.")


def test_an_error_shows_a_message_and_rolls_back(by_hand, caplog):
    job = start(make)

    def fail(running, progress):
        assert results_of(job), "the job has not written anything yet"
        raise ZeroDivisionError("secret")

    in_the_middle(fail)
    with caplog.at_level(logging.ERROR):
        jobs.run(job.pk)

    assert reload(job).state == Job.State.FAILED
    assert reload(job).message == jobs.FAILED
    assert "ZeroDivisionError" in caplog.text
    assert results_of(job) == []
    assert reload(job).ended_at


@on_postgresql
def test_a_statement_that_the_database_ended_is_repeated_twice(by_hand):
    job = start(make)

    def lose(running, progress):
        connection.cursor().execute("DO 'BEGIN RAISE serialization_failure; END'")

    in_the_middle(lose)
    for attempt in (1, 2):
        jobs.run(job.pk)
        assert reload(job).state == Job.State.WAITING
        assert reload(job).attempts == attempt
        set_heartbeat_age(job, 31)
    jobs.run(job.pk)
    assert reload(job).state == Job.State.FAILED
    assert results_of(job) == []


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_jobs_wait_longer_and_longer_for_a_database_that_is_away(by_hand, error):
    job = start(make)

    def lose(running, progress):
        raise error("server closed the connection unexpectedly")

    in_the_middle(lose)
    pauses = []
    while jobs.run(job.pk) and not reload(job).ended_at:
        assert reload(job).state == Job.State.WAITING
        assert reload(job).message == jobs.RETRYING
        runnable_at = reload(job).heartbeat_at + jobs.DEAD_AFTER
        pauses.append((runnable_at - timezone.now()).total_seconds())
        set_heartbeat_age(job, 31)
    assert len(pauses) == 10
    for n, pause in enumerate(pauses, 1):
        assert 2**n - 5 < pause <= 2**n * 1.1
    assert reload(job).state == Job.State.FAILED
    assert reload(job).message == jobs.FAILED
    assert results_of(job) == []


def test_a_job_whose_database_is_away_neither_delays_others_nor_is_forgotten(
    settings, monkeypatch
):
    """An export waits for the replica, and a roster that comes after it does not."""
    a_minute = replace(jobs.DELAYS_WHILE_AWAY, first=timedelta(minutes=1))
    monkeypatch.setattr(jobs, "DELAYS_WHILE_AWAY", a_minute)
    settings.JOBS_BY_MESSAGE = False
    waiting, second = start(make), start(make)

    def lose(running, progress):
        if running.pk == waiting.pk:
            raise OperationalError("server closed the connection unexpectedly")

    in_the_middle(lose)
    tasks.run_job(waiting.pk)
    tasks.run_job(second.pk)
    assert reload(second).state == Job.State.DONE
    assert reload(waiting).attempts == 1

    # Its message is used up, so it is sent again as soon as the pause is over.
    example_jobs.in_the_middle.clear()
    settings.JOBS_BY_MESSAGE = True
    wake_forgotten()
    assert reload(waiting).state == Job.State.WAITING
    set_heartbeat_age(waiting, 31)
    wake_forgotten()
    assert reload(waiting).state == Job.State.DONE


@on_postgresql
def test_a_job_is_repeated_after_its_connection_was_cut(by_hand):
    job = start(make)

    def cut(running, progress):
        example_jobs.in_the_middle.clear()
        connection.connection.close()

    in_the_middle(cut)
    jobs.run(job.pk)
    assert reload(job).state == Job.State.WAITING
    set_heartbeat_age(job, 31)
    jobs.run(job.pk)
    assert reload(job).state == Job.State.DONE
    assert results_of(job) == ["attempt 2"]


def test_the_outcome_is_written_after_a_database_failure(by_hand, monkeypatch):
    at_once = replace(jobs.WRITE_DELAYS, first=timedelta(milliseconds=10))
    monkeypatch.setattr(jobs, "WRITE_DELAYS", at_once)
    job = start(make)
    attempt, calls = jobs._attempt, []

    def failing(running):
        calls.append(running)
        # The first query is that of `confirm`.
        if len(calls) == 2:
            raise OperationalError("the database system is starting up")
        return attempt(running)

    monkeypatch.setattr(jobs, "_attempt", failing)
    jobs.run(job.pk)
    assert len(calls) == 3
    assert reload(job).state == Job.State.DONE


# Workers that die, hang or lack a kind of job


WORK = """
import django
django.setup()
from survey.work import jobs
from survey.tests import example_jobs

jobs.HEARTBEAT = 0.05
jobs.run({pk})
"""


def environment() -> dict[str, str]:
    """Return the environment of a process that uses the tests' database."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
        "GROUNDSWELL_TEST_DATABASE": str(connection.settings_dict["NAME"]),
    }


def in_a_process(program: str, timeout: float) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=project.BASE_DIR,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


class Worker:
    """A process that stops in the middle of the job."""

    def __init__(self, job: Job, folder: Path) -> None:
        reached = folder / "reached"
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORK.format(pk=job.pk)],
            cwd=project.BASE_DIR,
            env={**environment(), example_jobs.STOP_AT: str(reached)},
        )
        deadline = time.monotonic() + patience(30)
        while not reached.exists():
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@on_postgresql
def test_another_worker_runs_a_killed_workers_job(by_hand, monkeypatch, tmp_path):
    job = start(make)
    worker = Worker(job, tmp_path)
    try:
        a_second = replace(jobs.LEASE, duration=timedelta(seconds=1))
        monkeypatch.setattr(jobs, "LEASE", a_second)
        time.sleep(1.2)
        # The worker is alive, so no other takes the job.
        jobs.run(job.pk)
        assert (reload(job).state, reload(job).attempts) == (Job.State.RUNNING, 1)
    finally:
        worker.kill()
    jobs.run(job.pk)
    assert reload(job).attempts == 1
    assert results_of(job) == []

    time.sleep(1.1)
    assert list(runnable_jobs()) == [job]
    jobs.run(job.pk)

    assert (reload(job).state, reload(job).attempts) == (Job.State.DONE, 2)
    assert results_of(job) == ["attempt 2"]


def test_a_job_fails_after_three_dead_workers(by_hand):
    job = start(make)
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING, attempts=3)
    set_heartbeat_age(job, 29)
    jobs.run(job.pk)
    assert reload(job).state == Job.State.RUNNING
    set_heartbeat_age(job, 31)
    jobs.run(job.pk)

    assert reload(job).state == Job.State.FAILED
    assert reload(job).message == jobs.WORKER_DIED
    assert results_of(job) == []


@pytest.mark.parametrize("minutes", [-2, 2])
def test_a_worker_with_a_wrong_clock_neither_loses_nor_takes_over_a_job(
    by_hand, monkeypatch, minutes
):
    real = timezone.now

    def set_clock(minutes: int) -> None:
        shift = timedelta(minutes=minutes)
        monkeypatch.setattr(timezone, "now", lambda: real() + shift)

    def count_dead() -> int:
        """Count how often one of two workers takes the other for dead."""
        waiting = Job.State.WAITING
        progress, number = jobs.Progress(jobs._claim(start(make).pk, waiting)), 0
        for writer, reader in ((0, minutes), (minutes, 0)):
            set_clock(writer)
            progress.write()
            set_clock(reader)
            number += runnable_jobs().count()
        Job.objects.all().delete()
        return number

    assert count_dead() == 0
    # The twin: by the workers' own clocks, as before.
    monkeypatch.setattr(row_leases, "Now", lambda: Value(timezone.now()))
    assert count_dead() == 1


@on_postgresql
@pytest.mark.parametrize(
    ("kind", "left"), [(make, "attempt 2"), (careless, "attempt 1")]
)
def test_a_suspended_worker_does_not_overwrite_its_successor(
    by_hand, monkeypatch, kind, left
):
    """The twin, `careless`, overwrites the result."""
    job = start(kind)
    run = kind.run
    District.objects.create(code="before", name="before")

    def slow(running, progress):
        if running.attempts == 1:
            in_other_connection(lambda: set_heartbeat_age(job, 31))
            in_other_connection(lambda: jobs.run(job.pk))
        run(running, progress)

    monkeypatch.setitem(JOB_KINDS, kind.name, replace(kind, run=slow))
    jobs.run(job.pk)

    job = reload(job)
    assert results_of(job) == [left]
    # In both cases, the second worker records the outcome.
    assert (job.state, job.attempts) == (Job.State.DONE, 2)


def test_late_heartbeats_and_outcomes_are_ignored(by_hand):
    job = start(make)
    first = jobs._claim(job.pk, Job.State.WAITING)
    set_heartbeat_age(job, 31)
    second = jobs._claim(job.pk, Job.State.RUNNING)
    assert (first.attempts, second.attempts) == (1, 2)

    late = jobs.Progress(first)
    late.done = 99
    late.write()
    assert late.taken_over
    with pytest.raises(jobs.TakenOver):
        late.advance()
    jobs._end(first, Job.State.FAILED, "from the first")
    assert (reload(job).state, reload(job).done) == (Job.State.RUNNING, 0)

    jobs._end(second, Job.State.DONE, "from the second")
    late = jobs.Progress(second)
    late.write()
    assert reload(job).message == "from the second"


@on_postgresql
def test_no_worker_takes_over_a_job_during_its_commit(by_hand):
    job = start(make)
    claimed = jobs._claim(job.pk, Job.State.WAITING)
    set_heartbeat_age(job, 31)
    with transaction.atomic():
        jobs.Progress(claimed).confirm()
        # The test servers have a lock timeout of one second.
        with pytest.raises(OperationalError, match="lock timeout"):
            in_other_connection(lambda: jobs.run(job.pk))
    assert reload(job).attempts == 1


def test_a_hanging_heartbeat_does_not_block_the_job(by_hand, monkeypatch):
    monkeypatch.setattr(jobs, "HEARTBEAT", 0.05)
    stuck, let_go = threading.Event(), threading.Event()

    def write(progress):
        stuck.set()
        let_go.wait(patience(20))

    monkeypatch.setattr(jobs.Progress, "write", write)
    job = start(make)
    in_the_middle(lambda running, progress: stuck.wait(patience(5)))
    began = time.monotonic()
    jobs.run(job.pk)
    took = time.monotonic() - began
    let_go.set()

    assert stuck.is_set()
    assert reload(job).state == Job.State.DONE
    assert took < patience(3)


def test_unknown_kinds_are_left_for_newer_workers(by_hand):
    job = Job.objects.create(kind="test.of-a-later-release")
    jobs.run(job.pk)
    wake_forgotten()
    assert (reload(job).state, reload(job).attempts) == (Job.State.WAITING, 0)


def test_unknown_kinds_fail_after_an_hour(by_hand):
    long_ago = timezone.now() - timedelta(hours=1, minutes=1)
    lost = Job.objects.create(kind="test.of-an-earlier-release", created_at=long_ago)
    known = Job.objects.create(kind="test.make", created_at=long_ago)
    wake_forgotten()
    assert (reload(lost).state, reload(lost).message) == (
        Job.State.FAILED,
        jobs.UNKNOWN_KIND,
    )
    assert reload(known).state == Job.State.WAITING


# The broker


# A process of its own for each broker, after one start of Django.
START = """
import os
import django
from django.conf import settings

settings.CELERY_TASK_ALWAYS_EAGER = False
settings.CELERY_BROKER_CONNECTION_TIMEOUT = 1
settings.CELERY_TASK_PUBLISH_RETRY_POLICY = {{"max_retries": 1, "interval_max": 0.2}}
django.setup()
from settings.celery import app
from survey.work.jobs import start
from survey.tests.example_jobs import make

for port in {ports}:
    if not os.fork():
        app.conf.broker_url = f"amqp://guest:guest@127.0.0.1:{{port}}//"
        print(start(make).pk, flush=True)
        os._exit(0)
    _, status = os.wait()
    assert status == 0
"""


def test_jobs_are_stored_while_the_broker_is_away():
    away, hung, no_broker = (socket.create_server(("127.0.0.1", 0)) for _ in range(3))
    with away, hung, no_broker:
        ports = [opened.getsockname()[1] for opened in (away, hung, no_broker)]
        away.close()
        answering = threading.Thread(
            target=lambda: [no_broker.accept()[0].close() for _ in range(2)],
            daemon=True,
        )
        answering.start()
        done = in_a_process(START.format(ports=ports), timeout=patience(60))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the message broker is away") == 3
    stored = Job.objects.filter(pk__in=done.stdout.split())
    assert [job.state for job in stored] == [Job.State.WAITING] * 3


def test_a_broker_that_refuses_the_login_counts_as_away(monkeypatch, caplog):
    def refuse(*given, **more):
        raise AccessRefused("ACCESS_REFUSED - Login was refused")

    monkeypatch.setattr(tasks.run_job, "apply_async", refuse)
    job = start(make)
    assert reload(job).state == Job.State.WAITING
    assert "the message broker is away" in caplog.text


def test_unsent_jobs_are_sent_later(by_hand, settings):
    job = start(make)
    settings.JOBS_BY_MESSAGE = True
    wake_forgotten()
    assert reload(job).state == Job.State.WAITING, "its message may still be on its way"

    Job.objects.update(created_at=timezone.now() - timedelta(seconds=31))
    tasks.wake_forgotten_jobs()
    assert reload(job).state == Job.State.DONE


def test_forgotten_jobs_are_sent_to_their_queues_ten_at_a_time(monkeypatch):
    sent = []
    monkeypatch.setattr(
        tasks.run_job,
        "apply_async",
        lambda args, kwargs, **options: sent.append((*args, options["queue"])),
    )
    ago = timezone.now() - timedelta(minutes=5)
    quick, long = (
        [Job.objects.create(kind=kind, created_at=ago).pk for _ in range(12)]
        for kind in ("test.make", "test.long")
    )
    wake_forgotten()
    assert sent == [
        *((pk, "quick") for pk in quick[:10]),
        *((pk, "long") for pk in long[:10]),
    ]


def test_a_lost_window_of_feeds_is_woken_within_a_minute(monkeypatch, settings):
    sent = []
    monkeypatch.setattr(
        tasks.run_job,
        "apply_async",
        lambda args, kwargs, **options: sent.append((*args, options)),
    )
    ago = timezone.now() - timedelta(minutes=5)
    Job.objects.bulk_create(
        Job(kind=kind, created_at=ago)
        for kind in ("feed.download", "feed.scan", "test.make")
        for _ in range(900)
    )

    def wake_and_run():
        """Return how many jobs of each queue are woken; they end at once."""
        sent.clear()
        wake_forgotten()
        assert all(options["expires"] == 30 for _, options in sent)
        Job.objects.filter(pk__in=[pk for pk, _ in sent]).update(
            state=Job.State.DONE, ended_at=timezone.now()
        )
        return Counter(options["queue"] for _, options in sent)

    settings.JOB_WORKERS = {"downloads": 16, "scans": 3}
    assert wake_and_run() == {"downloads": 320, "scans": 60, "quick": 10}
    # Every 15 seconds.
    assert [wake_and_run()["downloads"] for _ in range(3)] == [320, 260, 0]
    settings.JOB_WORKERS = {}
    assert wake_and_run() == {"scans": 10, "quick": 10}


# Without a broker


def test_the_embedded_worker_runs_a_queue_in_order(by_hand):
    first, second, long = start(make), start(make), start(make_slowly)
    order = []
    in_the_middle(lambda running, progress: order.append(running.pk))
    run_waiting_jobs(jobs.QUICK)
    assert order == [first.pk, second.pk]
    assert reload(long).state == Job.State.WAITING
    run_waiting_jobs(jobs.LONG)
    assert reload(long).state == Job.State.DONE


def test_a_stopping_worker_puts_its_job_back(by_hand):
    job = start(make)
    in_the_middle(lambda running, progress: jobs.stop_this_worker())
    jobs.run(job.pk)
    assert (reload(job).state, reload(job).attempts) == (Job.State.WAITING, 0)
    assert results_of(job) == []


def test_a_failing_scheduled_task_does_not_stop_the_others(
    by_hand, settings, monkeypatch, caplog
):
    ran = []

    def fail():
        ran.append("bad")
        raise ZeroDivisionError

    fail.name = "bad"
    monkeypatch.setattr(tasks, "bad", fail, raising=False)
    monkeypatch.setattr(tasks, "good", lambda: ran.append("good"), raising=False)
    settings.CELERY_BEAT_SCHEDULE = {
        name: {"task": f"survey.tasks.{name}", "schedule": 60}
        for name in ("bad", "good")
    }
    schedule = Schedule()
    schedule.run_due_tasks()
    schedule.run_due_tasks()
    assert ran == ["bad", "good"]
    assert "bad failed" in caplog.text


def test_the_embedded_worker_survives_a_busy_database(monkeypatch):
    over, calls = threading.Event(), []

    def act():
        calls.append(1)
        if len(calls) == 3:
            over.set()
        raise OperationalError("database is locked")

    monkeypatch.setattr("survey.management.commands.work.POLL_INTERVAL", 0.01)
    worker = threading.Thread(target=poll, args=(over, act))
    worker.start()
    worker.join(5)
    assert len(calls) == 3
    close_old_connections()


def test_an_idle_embedded_worker_reads_no_jobs_until_something_is_written(
    monkeypatch, tmp_path
):
    database, over, calls = tmp_path / "db.sqlite3", threading.Event(), []
    writes = DatabaseWrites()
    writes.paths = (str(database), f"{database}-wal")
    database.touch()
    monkeypatch.setattr("survey.management.commands.work.POLL_INTERVAL", 0.01)
    worker = threading.Thread(
        target=poll, args=(over, lambda: calls.append(1)), kwargs={"writes": writes}
    )
    worker.start()
    try:
        time.sleep(0.3)
        assert len(calls) == 1
        for size in (1, 2):
            Path(f"{database}-wal").write_bytes(b"x" * size)
            deadline = time.monotonic() + patience(5)
            while len(calls) == size:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        # A worker may have died without a word.
        monkeypatch.setattr("survey.management.commands.work.MAX_IDLE", 0.0)
        writes.forget()
        time.sleep(0.3)
        assert len(calls) > 5
    finally:
        over.set()
        worker.join(5)


def test_a_failed_look_at_the_jobs_is_repeated_without_a_new_write(tmp_path):
    writes = DatabaseWrites()
    writes.paths = (str(tmp_path / "db.sqlite3"),)
    assert [writes.happened() for _ in range(3)] == [True, False, False]
    writes.forget()
    assert writes.happened()


def test_scheduled_entries_are_tasks_with_intervals_in_seconds():
    # `manage.py work` supports no other schedules.
    from importlib import import_module

    for entry in project.CELERY_BEAT_SCHEDULE.values():
        assert isinstance(entry["schedule"], int | float)
        assert set(entry) <= {"task", "schedule", "options"}
        module, function = entry["task"].rsplit(".", 1)
        assert getattr(import_module(module), function).name == entry["task"]
