"""Jobs: begun once, seen all along, done although workers die."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
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
from django.utils import timezone

from accounts.models import District
from survey import jobs, tasks
from survey.jobs import JOB_KINDS, request_cancel, runnable_jobs, start, wake_forgotten
from survey.management.commands.work import TimeTable, go_on, work_off
from survey.models import Job
from survey.tests import made_up_jobs
from survey.tests.made_up_jobs import careless, make, make_slowly, refuse, result_of

pytestmark = pytest.mark.django_db(transaction=True)

on_postgresql = pytest.mark.skipif(
    not project.SERVERS,
    reason="SQLite's readers wait for no writer, and its writers do",
)


@pytest.fixture(autouse=True)
def nothing_left_over(monkeypatch):
    monkeypatch.setattr(jobs, "_stopping", threading.Event())
    yield
    made_up_jobs.meanwhile.clear()


@pytest.fixture
def by_hand(settings):
    """Nobody is woken: a test runs the jobs itself."""
    settings.JOBS_BY_MESSAGE = False


def meanwhile(act):
    made_up_jobs.meanwhile.append(act)


def now(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def made(job: Job) -> list[str]:
    found = District.objects.filter(code=result_of(job))
    return list(found.values_list("name", flat=True))


def elsewhere(act):
    """In a thread of its own, so on a connection of its own."""
    found = []

    def do() -> None:
        try:
            found.append(act())
        except Exception as error:
            found.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=do)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def silent_for(job: Job, seconds: float) -> None:
    Job.objects.filter(pk=job.pk).update(
        heartbeat_at=timezone.now() - timedelta(seconds=seconds)
    )


def test_a_job_is_started_on_commit_done_once_and_says_so():
    with transaction.atomic():
        job = start(make, subject_id=7)
        assert now(job).state == Job.State.WAITING
        assert made(job) == []

    job = now(job)
    assert (job.state, job.message) == (Job.State.DONE, "Making it")
    assert (job.done, job.total, job.attempts) == (2, 2, 1)
    assert job.started_at <= job.ended_at
    assert made(job) == ["attempt 1"]

    # Its message comes twice.
    tasks.run_job(job.pk)
    assert now(job).attempts == 1


def test_what_is_rolled_back_was_never_started(monkeypatch):
    woken = []
    monkeypatch.setattr(jobs, "wake", lambda *given: woken.append(given))
    with transaction.atomic():
        start(make)
        transaction.set_rollback(True)
    assert (woken, Job.objects.count()) == ([], 0)
    # The twin.
    start(make_slowly)
    assert woken == [(Job.objects.get().pk, jobs.LONG)]


def test_two_workers_that_take_the_same_job_do_it_once(by_hand):
    job = start(make)
    times = []
    meanwhile(lambda one, progress: times.append(one.attempts))
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
    assert now(job).attempts == 1
    assert now(job).state == Job.State.DONE


@on_postgresql
def test_progress_is_seen_while_the_jobs_transaction_is_open(by_hand, monkeypatch):
    monkeypatch.setattr(jobs, "HEARTBEAT", 0.02)
    job = start(make)
    seen = []

    def look(one, progress):
        deadline = time.monotonic() + 5
        while not seen and time.monotonic() < deadline:
            row = elsewhere(lambda: now(job))
            if row.done:
                seen.append((row.message, row.done, row.total))
        assert elsewhere(lambda: made(job)) == []

    meanwhile(look)
    jobs.run(job.pk)

    assert seen == [("Making it", 1, 2)]
    assert made(job) == ["attempt 1"]


def test_on_sqlite_the_heartbeat_waits_until_the_job_has_written(by_hand, monkeypatch):
    """And the job does not wait for it."""
    monkeypatch.setattr(jobs, "HEARTBEAT", 0.02)
    job = start(make)
    meanwhile(lambda one, progress: time.sleep(0.2))
    began = time.monotonic()
    jobs.run(job.pk)
    assert time.monotonic() - began < 2
    assert now(job).state == Job.State.DONE


def test_what_waits_is_cancelled_at_once(by_hand):
    job = start(make)
    request_cancel(job)

    assert now(job).state == Job.State.CANCELLED
    jobs.run(job.pk)
    assert made(job) == []
    # What has ended stays as it ended.
    request_cancel(job)
    assert now(job).cancel_asked_at is None


@on_postgresql
def test_what_runs_is_cancelled_at_its_next_step(by_hand, monkeypatch):
    monkeypatch.setattr(jobs, "HEARTBEAT", 0.02)
    job = start(make)

    def cancel(one, progress):
        elsewhere(lambda: request_cancel(job))
        deadline = time.monotonic() + 5
        while not progress.cancel_asked and time.monotonic() < deadline:
            time.sleep(0.01)

    meanwhile(cancel)
    jobs.run(job.pk)

    assert now(job).state == Job.State.CANCELLED
    assert now(job).message == "Cancelled. Nothing was saved."
    assert made(job) == []


def test_what_was_to_stop_is_not_begun_again_after_its_worker_died(by_hand):
    job = start(make)
    Job.objects.filter(pk=job.pk).update(
        state=Job.State.RUNNING, attempts=1, cancel_asked_at=timezone.now()
    )
    silent_for(job, 31)

    jobs.run(job.pk)

    assert now(job).state == Job.State.CANCELLED
    assert made(job) == []


def test_a_job_that_is_refused_says_why(by_hand):
    job = start(refuse)
    jobs.run(job.pk)
    job = now(job)
    assert (job.state, job.attempts) == (Job.State.FAILED, 1)
    assert job.message.startswith("Row 3 has no school.")


def test_an_error_leaves_words_and_nothing_half_done(by_hand, caplog):
    job = start(make)

    def fail(one, progress):
        assert made(job), "nothing there to be half done"
        raise ZeroDivisionError("secret")

    meanwhile(fail)
    with caplog.at_level(logging.ERROR):
        jobs.run(job.pk)

    assert now(job).state == Job.State.FAILED
    assert now(job).message == jobs.FAILED
    assert "ZeroDivisionError" in caplog.text
    assert made(job) == []
    assert now(job).ended_at


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_database_that_goes_away_is_tried_three_times(by_hand, error):
    job = start(make)

    def lose(one, progress):
        raise error("server closed the connection unexpectedly")

    meanwhile(lose)
    for attempt in (1, 2):
        jobs.run(job.pk)
        assert now(job).state == Job.State.WAITING
        assert now(job).attempts == attempt
        assert now(job).message == jobs.RETRYING
    jobs.run(job.pk)
    assert now(job).state == Job.State.FAILED
    assert made(job) == []


@on_postgresql
def test_a_job_whose_connection_is_cut_is_begun_again_and_done(by_hand):
    job = start(make)

    def cut(one, progress):
        made_up_jobs.meanwhile.clear()
        connection.connection.close()

    meanwhile(cut)
    jobs.run(job.pk)
    assert now(job).state == Job.State.WAITING
    jobs.run(job.pk)
    assert now(job).state == Job.State.DONE
    assert made(job) == ["attempt 2"]


def test_how_it_ended_is_written_although_the_database_fails_once(by_hand, monkeypatch):
    monkeypatch.setattr(jobs, "RETRY_PAUSES", (0.01, 0.01))
    job = start(make)
    attempt, asked = jobs._attempt, []

    def failing(one):
        asked.append(one)
        # `confirm` is the first to ask.
        if len(asked) == 2:
            raise OperationalError("the database system is starting up")
        return attempt(one)

    monkeypatch.setattr(jobs, "_attempt", failing)
    jobs.run(job.pk)
    assert len(asked) == 3
    assert now(job).state == Job.State.DONE


# Workers that die, stand still, or know nothing of it


WORK = """
import django
django.setup()
from survey import jobs
from survey.tests import made_up_jobs

jobs.HEARTBEAT = 0.05
jobs.run({pk})
"""


def environment() -> dict[str, str]:
    """For a process that works on the tests' own database."""
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
    """A process of its own, which stops in the middle of the job."""

    def __init__(self, job: Job, folder: Path) -> None:
        reached = folder / "reached"
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORK.format(pk=job.pk)],
            cwd=project.BASE_DIR,
            env={**environment(), made_up_jobs.STOP_AT: str(reached)},
        )
        deadline = time.monotonic() + 30
        while not reached.exists():
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@on_postgresql
def test_a_killed_workers_job_is_done_by_another_once(by_hand, monkeypatch, tmp_path):
    job = start(make)
    worker = Worker(job, tmp_path)
    try:
        monkeypatch.setattr(jobs, "DEAD_AFTER", timedelta(seconds=1))
        time.sleep(1.2)
        # It lives: nobody else takes it.
        jobs.run(job.pk)
        assert (now(job).state, now(job).attempts) == (Job.State.RUNNING, 1)
    finally:
        worker.kill()
    jobs.run(job.pk)
    assert now(job).attempts == 1
    assert made(job) == []

    time.sleep(1.1)
    assert list(runnable_jobs()) == [job]
    jobs.run(job.pk)

    assert (now(job).state, now(job).attempts) == (Job.State.DONE, 2)
    assert made(job) == ["attempt 2"]


def test_after_three_deaths_it_has_failed_and_says_so(by_hand):
    job = start(make)
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING, attempts=3)
    silent_for(job, 29)
    jobs.run(job.pk)
    assert now(job).state == Job.State.RUNNING
    silent_for(job, 31)
    jobs.run(job.pk)

    assert now(job).state == Job.State.FAILED
    assert now(job).message == jobs.WORKER_DIED
    assert made(job) == []


@on_postgresql
@pytest.mark.parametrize(
    ("kind", "left"), [(make, "attempt 2"), (careless, "attempt 1")]
)
def test_a_worker_that_stood_still_undoes_nothing_of_its_successors(
    by_hand, monkeypatch, kind, left
):
    """The twin is careless, and writes its result over the other's."""
    job = start(kind)
    run = kind.run
    District.objects.create(code="before", name="before")

    def slow(one, progress):
        if one.attempts == 1:
            elsewhere(lambda: silent_for(job, 31))
            elsewhere(lambda: jobs.run(job.pk))
        run(one, progress)

    monkeypatch.setitem(JOB_KINDS, kind.name, replace(kind, run=slow))
    jobs.run(job.pk)

    job = now(job)
    assert made(job) == [left]
    # Either way, how it ended is the second one's to say.
    assert (job.state, job.attempts) == (Job.State.DONE, 2)


def test_a_late_heartbeat_and_a_late_end_change_nothing(by_hand):
    job = start(make)
    first = jobs._claim(job.pk)
    silent_for(job, 31)
    second = jobs._claim(job.pk)
    assert (first.attempts, second.attempts) == (1, 2)

    late = jobs.Progress(first)
    late.done = 99
    late.write()
    assert late.taken_over
    with pytest.raises(jobs.TakenOver):
        late.advance()
    jobs._end(first, Job.State.FAILED, "the first one's")
    assert (now(job).state, now(job).done) == (Job.State.RUNNING, 0)

    jobs._end(second, Job.State.DONE, "the second one's")
    late = jobs.Progress(second)
    late.write()
    assert now(job).message == "the second one's"


@on_postgresql
def test_nobody_takes_a_job_over_while_its_result_is_committed(by_hand):
    job = start(make)
    claimed = jobs._claim(job.pk)
    silent_for(job, 31)
    with transaction.atomic():
        jobs.Progress(claimed).confirm()
        # The servers of the tests give up a lock after a second.
        with pytest.raises(OperationalError, match="lock timeout"):
            elsewhere(lambda: jobs.run(job.pk))
    assert now(job).attempts == 1


def test_a_heartbeat_that_does_not_come_back_keeps_no_job_from_ending(
    by_hand, monkeypatch
):
    monkeypatch.setattr(jobs, "HEARTBEAT", 0.05)
    stuck, let_go = threading.Event(), threading.Event()

    def write(progress):
        stuck.set()
        let_go.wait(20)

    monkeypatch.setattr(jobs.Progress, "write", write)
    job = start(make)
    meanwhile(lambda one, progress: stuck.wait(5))
    began = time.monotonic()
    jobs.run(job.pk)
    took = time.monotonic() - began
    let_go.set()

    assert stuck.is_set()
    assert now(job).state == Job.State.DONE
    assert took < 3


def test_a_kind_that_this_release_does_not_know_is_left_for_another(by_hand):
    job = Job.objects.create(kind="test.of-tomorrow")
    jobs.run(job.pk)
    wake_forgotten()
    assert (now(job).state, now(job).attempts) == (Job.State.WAITING, 0)


def test_a_kind_that_nobody_knows_any_more_is_ended_with_words(by_hand):
    long_ago = timezone.now() - timedelta(hours=1, minutes=1)
    lost = Job.objects.create(kind="test.of-yesterday", created_at=long_ago)
    known = Job.objects.create(kind="test.make", created_at=long_ago)
    wake_forgotten()
    assert (now(lost).state, now(lost).message) == (Job.State.FAILED, jobs.UNKNOWN_KIND)
    assert now(known).state == Job.State.WAITING


# The broker


START = """
import django
from django.conf import settings

settings.CELERY_TASK_ALWAYS_EAGER = False
settings.CELERY_BROKER_URL = "amqp://guest:guest@127.0.0.1:{port}//"
settings.CELERY_BROKER_CONNECTION_TIMEOUT = 1
settings.CELERY_TASK_PUBLISH_RETRY_POLICY = {{"max_retries": 1, "interval_max": 0.2}}
django.setup()
from survey.jobs import start
from survey.tests.made_up_jobs import make

print(start(make).pk)
"""


@pytest.mark.parametrize("broker", ["away", "hung", "not a broker"])
def test_a_job_is_started_although_no_broker_listens(broker):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if broker == "away":
            listener.close()
        if broker == "not a broker":
            answering = threading.Thread(
                target=lambda: [listener.accept()[0].close() for _ in range(2)],
                daemon=True,
            )
            answering.start()
        done = in_a_process(START.format(port=port), timeout=30)
    assert done.returncode == 0, done.stderr
    assert "the message broker is away" in done.stderr
    assert Job.objects.get(pk=int(done.stdout)).state == Job.State.WAITING


def test_a_broker_that_refuses_the_login_is_as_if_away(monkeypatch, caplog):
    def refuse(*given, **more):
        raise AccessRefused("ACCESS_REFUSED - Login was refused")

    monkeypatch.setattr(tasks.run_job, "apply_async", refuse)
    job = start(make)
    assert now(job).state == Job.State.WAITING
    assert "the message broker is away" in caplog.text


def test_what_was_not_sent_is_sent_later(by_hand, settings):
    job = start(make)
    settings.JOBS_BY_MESSAGE = True
    wake_forgotten()
    assert now(job).state == Job.State.WAITING, "its message may still be on its way"

    Job.objects.update(created_at=timezone.now() - timedelta(seconds=31))
    tasks.wake_forgotten_jobs()
    assert now(job).state == Job.State.DONE


def test_each_kind_is_sent_to_its_queue_and_no_more_than_there_is_room(monkeypatch):
    sent = []
    monkeypatch.setattr(
        tasks.run_job, "apply_async", lambda given, queue: sent.append((*given, queue))
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


# Where there is no broker


def test_the_embedded_worker_does_one_queue_in_order(by_hand):
    first, second, long = start(make), start(make), start(make_slowly)
    order = []
    meanwhile(lambda one, progress: order.append(one.pk))
    work_off(jobs.QUICK)
    assert order == [first.pk, second.pk]
    assert now(long).state == Job.State.WAITING
    work_off(jobs.LONG)
    assert now(long).state == Job.State.DONE


def test_a_worker_that_has_to_go_puts_its_job_back(by_hand):
    job = start(make)
    meanwhile(lambda one, progress: jobs.stop_this_worker())
    jobs.run(job.pk)
    assert (now(job).state, now(job).attempts) == (Job.State.WAITING, 0)
    assert made(job) == []


def test_the_time_table_goes_on_when_one_of_its_tasks_fails(
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
    times = TimeTable()
    times.work_off()
    times.work_off()
    assert ran == ["bad", "good"]
    assert "bad failed" in caplog.text


def test_a_database_that_is_busy_ends_no_embedded_worker(monkeypatch):
    over, asked = threading.Event(), []

    def act():
        asked.append(1)
        if len(asked) == 3:
            over.set()
        raise OperationalError("database is locked")

    monkeypatch.setattr("survey.management.commands.work.LOOK_EVERY", 0.01)
    worker = threading.Thread(target=go_on, args=(over, act))
    worker.start()
    worker.join(5)
    assert len(asked) == 3
    close_old_connections()


def test_every_entry_of_the_time_table_is_a_task_and_a_number_of_seconds():
    """`manage.py work` keeps no other times."""
    from importlib import import_module

    for entry in project.CELERY_BEAT_SCHEDULE.values():
        assert isinstance(entry["schedule"], int | float)
        assert set(entry) <= {"task", "schedule", "options"}
        module, function = entry["task"].rsplit(".", 1)
        assert getattr(import_module(module), function).name == entry["task"]
