"""Apply rosters while people answer, while workers die, and two at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from functools import partial

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.db import OperationalError, connection
from django.utils import timezone

from settings.tests.patience import patience
from survey.models import Identity, Job, Respondent, Response, RosterUpload
from survey.people.rosters import apply, apply_job, uploads
from survey.taking.storage import AnswerRow, Outcome, save_page
from survey.tests.browser.live_server import ROOT
from survey.work import jobs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
needs_postgresql = pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite has one writer and one worker"
)

HEADER = "district,school,student ID,given name,grade"


def people(numbers, school="lincoln", grade=7):
    return [f"riverside,{school},{n:05},Ann {n},{grade}" for n in numbers]


def upload_and_check(staff, administration, rows):
    """Upload a roster and run its dry run. Other jobs are run by the tests."""
    file = ContentFile("\n".join([HEADER, *rows]).encode(), "roster.csv")
    upload = uploads.receive(
        administration=administration,
        file=file,
        complete_for="schools",
        by=staff.dana,
        district=staff.riverside,
    )
    jobs.run(uploads.latest_job(upload).pk)
    upload.refresh_from_db()
    assert upload.state == "checked", upload.message
    return upload


def upload_and_confirm(staff, administration, rows):
    upload = upload_and_check(staff, administration, rows)
    uploads.confirm(
        upload,
        by=staff.dana,
        seen=str(upload.withdrawn),
        typed=str(upload.withdrawn),
    )
    return upload


def upload_and_apply(staff, administration, rows):
    upload = upload_and_confirm(staff, administration, rows)
    jobs.run(uploads.latest_job(upload).pk)
    upload.refresh_from_db()
    assert upload.state == "applied", upload.message
    return upload


@pytest.fixture(autouse=True)
def jobs_run_by_hand(monkeypatch):
    monkeypatch.setattr(jobs, "wake", lambda *_: None)


def people_of(administration):
    """Return all people, without what differs between two imports of a file."""
    rows = Identity.objects.filter(administration=administration).values_list(
        "external_id",
        "given_name",
        "respondent__grade",
        "respondent__school__code",
        "respondent__issue",
        "respondent__withdrawn_at",
    )
    return sorted((*cells, withdrawn is None) for *cells, withdrawn in rows)


# Interrupted workers --------------------------------------------------------

# A worker in slow motion, so that it can be killed in the middle.
WORKER = """
import sys, time
import django
django.setup()
from survey import tasks
from survey.work import jobs
from survey.people.rosters import apply
apply.ADD_AT_ONCE = apply.CHANGE_AT_ONCE = 20
write_batch = apply.write_batch
def slowly(write):
    write_batch(write)
    time.sleep(0.02)
apply.write_batch = slowly
jobs.run(int(sys.argv[1]))
"""


def start_worker(job):
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(job.pk)],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
            "GROUNDSWELL_TEST_DATABASE": str(connection.settings_dict["NAME"]),
            "GROUNDSWELL_TEST_SERVERS": settings.SERVERS,
            "GROUNDSWELL_FILES": settings.FILES_FOLDER,
        },
    )


def kill_once(process, has_started):
    """Kill a process with SIGKILL as soon as `has_started` returns true."""
    deadline = time.monotonic() + patience(60)
    while not has_started():
        assert process.poll() is None, "it finished before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait(patience(15))


FIRST = [*people(range(600)), *people(range(600, 700), "washington")]
# 200 people are new, 100 move, 300 change and 100 are missing.
SECOND = [
    *people(range(300), grade=8),
    *people(range(300, 400), "washington"),
    *people(range(400, 500)),
    *people(range(600, 700), "washington"),
    *people(range(700, 900)),
]


@pytest.fixture
def second_administration(administration):
    """Another administration, into which the same files are imported undisturbed."""
    second_administration = type(administration).objects.get(pk=administration.pk)
    second_administration.pk, second_administration.name = None, "again"
    second_administration.save(force_insert=True)
    return second_administration


# When to kill the worker.
MIDDLES = {
    "adding": lambda rows: rows.count() > 740,
    "changing": lambda rows: rows.filter(grade="08").count() > 60,
    "withdrawing": lambda rows: rows.exclude(withdrawn_at=None).count() > 0,
}


@pytest.mark.parametrize(
    "middle",
    ["adding", pytest.param("changing", marks=pytest.mark.sqlite), "withdrawing"],
)
def test_another_run_completes_the_work_of_a_killed_worker(
    staff, administration, second_administration, middle
):
    upload_and_apply(staff, administration, FIRST)
    codes = dict(Respondent.objects.values_list("pk", "code_digest"))
    upload = upload_and_confirm(staff, administration, SECOND)
    job = uploads.latest_job(upload)
    respondents = Respondent.objects.filter(administration=administration)
    process = start_worker(job)
    kill_once(process, lambda: MIDDLES[middle](respondents))
    half = people_of(administration)

    Job.objects.filter(pk=job.pk).update(
        heartbeat_at=timezone.now() - timedelta(minutes=5)
    )
    jobs.run(job.pk)
    job.refresh_from_db()
    upload.refresh_from_db()
    assert (job.state, job.attempts, upload.state) == ("done", 2, "applied")

    upload_and_apply(staff, second_administration, FIRST)
    upload_and_apply(staff, second_administration, SECOND)
    whole = people_of(second_administration)
    assert people_of(administration) == whole != half
    assert len(whole) == 900
    # All people have kept their codes.
    digests = dict(Respondent.objects.values_list("pk", "code_digest"))
    assert {pk: bytes(digests[pk]) for pk in codes} == {
        pk: bytes(code) for pk, code in codes.items()
    }
    # The page still shows the figures that were confirmed.
    assert upload.report["added"] == 200 and upload.withdrawn == 100


@pytest.mark.sqlite
def test_running_an_applied_roster_again_does_nothing(staff, administration):
    upload = upload_and_apply(staff, administration, FIRST)
    before = list(Respondent.objects.order_by("pk").values())
    job = uploads.latest_job(upload)
    Job.objects.filter(pk=job.pk).update(state="waiting", ended_at=None)
    jobs.run(job.pk)
    assert list(Respondent.objects.order_by("pk").values()) == before


@pytest.mark.sqlite
def test_another_worker_continues_after_a_shutdown(staff, administration, monkeypatch):
    monkeypatch.setattr(apply, "ADD_AT_ONCE", 20)
    upload = upload_and_confirm(staff, administration, people(range(200)))
    job = uploads.latest_job(upload)
    write = apply.write_changes

    def ended(diff, tell, record):
        def and_stop(step, done):
            jobs.stop_this_worker()
            tell(step, done)

        write(diff, and_stop, record)

    with monkeypatch.context() as deploy:
        deploy.setattr(apply_job, "write_changes", ended)
        jobs.run(job.pk)
    jobs._stopping.clear()
    job.refresh_from_db()
    upload.refresh_from_db()
    assert (job.state, upload.state) == ("waiting", "applying")
    assert 0 < Respondent.objects.count() < 200
    jobs.run(job.pk)
    upload.refresh_from_db()
    assert upload.state == "applied"
    assert Respondent.objects.count() == 200


@pytest.mark.sqlite
def test_a_lost_database_connection_is_retried(staff, administration, monkeypatch):
    upload = upload_and_confirm(staff, administration, people(range(20)))
    job = uploads.latest_job(upload)

    def away(*_):
        raise OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as failover:
        failover.setattr(apply_job, "write_changes", away)
        jobs.run(job.pk)
    upload.refresh_from_db()
    assert upload.state == "applying"
    # After a pause.
    Job.objects.filter(pk=job.pk).update(heartbeat_at=None)
    jobs.run(job.pk)
    upload.refresh_from_db()
    assert upload.state == "applied"


# Two rosters at once ----------------------------------------------------------


def start_threads(*actions):
    errors = []

    def run(action):
        try:
            action()
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[action]) for action in actions]
    for thread in threads:
        thread.start()
    return threads, errors


@needs_postgresql
def test_two_rosters_of_one_administration_are_applied_in_turn(
    staff, administration, monkeypatch
):
    first = upload_and_confirm(staff, administration, people(range(300)))
    two = upload_and_confirm(staff, administration, people(range(200, 500)))
    steps = []
    write = apply.write_changes

    def noted(*args):
        steps.append("begin")
        write(*args)
        steps.append("end")

    monkeypatch.setattr(apply_job, "write_changes", noted)
    jobs_of_both = [uploads.latest_job(upload).pk for upload in (first, two)]
    threads, errors = start_threads(*[partial(jobs.run, pk) for pk in jobs_of_both])
    for thread in threads:
        thread.join(60)

    assert not errors
    states = sorted(RosterUpload.objects.values_list("state", flat=True))
    # The second would withdraw people of the first, so it needs a confirmation.
    assert states == ["applied", "checked"]
    assert steps == ["begin", "end"]
    assert Respondent.objects.filter(withdrawn_at=None).count() == 300


# Respondents who answer meanwhile ---------------------------------------------


def slow_down_updates(monkeypatch):
    """Make each changed row cost half a millisecond more."""
    update = apply.update_rows

    def slowly(writer, table, key, columns):
        update(writer, table, key, columns)
        if table == "survey_respondent":
            [(rows,)] = writer.fetch_all("SELECT count(*) FROM roster_batch")
            time.sleep(rows / 2000)

    monkeypatch.setattr(apply, "update_rows", slowly)


def save_during(action, administration, pk):
    """Save one person's page again and again while `action` runs.

    Return the number of saved pages, and the errors of the others.
    """
    threads, errors = start_threads(action)
    saved, refused, revision = 0, [], 10**15
    item = next(iter(Response.objects.values_list("item_id", flat=True)), 1)
    while threads[0].is_alive():
        revision += 1
        try:
            receipt = save_page(
                administration_id=administration.pk,
                respondent_id=pk,
                issue=1,
                revision=revision,
                rows=[AnswerRow(item, "a", "3")],
            )
            assert receipt.outcome is Outcome.SAVED
            saved += 1
        except OperationalError as error:
            refused.append(str(error))
    assert not errors
    return saved, refused


LARGE = 4000


@needs_postgresql
def test_no_page_save_fails_while_a_large_roster_is_applied(
    staff, administration, monkeypatch
):
    upload_and_apply(staff, administration, people(range(LARGE)))
    upload = upload_and_confirm(staff, administration, people(range(LARGE), grade=8))
    slow_down_updates(monkeypatch)
    someone = Respondent.objects.order_by("pk")[LARGE // 2].pk
    job = uploads.latest_job(upload)

    saved, refused = save_during(lambda: jobs.run(job.pk), administration, someone)

    assert Respondent.objects.filter(grade="08").count() == LARGE
    assert refused == []
    assert saved > 20


@needs_postgresql
def test_page_saves_would_fail_in_a_single_transaction(
    staff, administration, monkeypatch
):
    """Shows that the test above would fail without batches."""
    upload_and_apply(staff, administration, people(range(LARGE)))
    upload = upload_and_confirm(staff, administration, people(range(LARGE), grade=8))
    slow_down_updates(monkeypatch)
    monkeypatch.setattr(apply, "CHANGE_AT_ONCE", LARGE)
    someone = Respondent.objects.order_by("pk")[LARGE // 2].pk
    job = uploads.latest_job(upload)

    _, refused = save_during(lambda: jobs.run(job.pk), administration, someone)

    assert any("lock timeout" in text for text in refused)


@needs_postgresql
def test_a_batch_with_a_locked_person_is_retried(staff, administration):
    """In the meantime a batch releases the locks of its other people."""
    upload_and_apply(staff, administration, people(range(50)))
    upload = upload_and_confirm(staff, administration, people(range(50), grade=8))
    held, over = threading.Event(), threading.Event()

    def hold():
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT 1 FROM survey_respondent LIMIT 1 FOR SHARE")
            held.set()
            over.wait(2)
            cursor.execute("COMMIT")

    threads, errors = start_threads(hold)
    held.wait(patience(5))
    jobs.run(uploads.latest_job(upload).pk)
    over.set()
    threads[0].join(patience(10))
    assert not errors
    upload.refresh_from_db()
    assert upload.state == "applied"
    assert Respondent.objects.filter(grade="08").count() == 50
