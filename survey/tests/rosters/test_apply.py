"""Applying a roster while people answer, while workers die, two at a time."""

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

from survey import jobs
from survey.models import Identity, Job, Respondent, Response, RosterUpload
from survey.rosters import apply, uploads
from survey.taking.storage import AnswerRow, Outcome, save_page
from survey.tests.browser.serving import ROOT

pytestmark = pytest.mark.django_db(transaction=True)
needs_postgresql = pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite has one writer, and one worker"
)

HEADER = "district,school,student ID,given name,grade"


def people(numbers, school="lincoln", grade=7):
    return [f"riverside,{school},{n:05},Ann {n},{grade}" for n in numbers]


def checked(staff, administration, rows):
    """An upload whose dry run is done. Jobs run here only when they are told to."""
    file = ContentFile("\n".join([HEADER, *rows]).encode(), "roster.csv")
    upload = uploads.receive(
        administration=administration,
        file=file,
        complete_for="schools",
        by=staff.dana,
        district=staff.riverside,
    )
    jobs.run(uploads.job_of(upload).pk)
    upload.refresh_from_db()
    assert upload.state == "checked", upload.message
    return upload


def confirmed(staff, administration, rows):
    upload = checked(staff, administration, rows)
    uploads.confirm(
        upload,
        by=staff.dana,
        seen=str(upload.withdrawn),
        typed=str(upload.withdrawn),
    )
    return upload


def applied(staff, administration, rows):
    upload = confirmed(staff, administration, rows)
    jobs.run(uploads.job_of(upload).pk)
    upload.refresh_from_db()
    assert upload.state == "applied", upload.message
    return upload


@pytest.fixture(autouse=True)
def by_hand(monkeypatch):
    monkeypatch.setattr(jobs, "wake", lambda *_: None)


def as_they_are(administration):
    """Everybody, without what differs between two imports of the same file."""
    found = Identity.objects.filter(administration=administration).values_list(
        "external_id",
        "given_name",
        "respondent__grade",
        "respondent__school__code",
        "respondent__issue",
        "respondent__withdrawn_at",
    )
    return sorted((*one, withdrawn is None) for *one, withdrawn in found)


# A worker dies --------------------------------------------------------------

# As a worker does it, in small steps, so that there is a middle.
WORKER = """
import sys, time
import django
django.setup()
from survey import jobs, tasks
from survey.rosters import apply
apply.ADD_AT_ONCE = apply.CHANGE_AT_ONCE = 20
in_brief = apply.in_brief
def slowly(write):
    in_brief(write)
    time.sleep(0.02)
apply.in_brief = slowly
jobs.run(int(sys.argv[1]))
"""


def worker(job):
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


def killed_once(process, begun):
    """Kill -9, once `begun` says that there is something to see."""
    deadline = time.monotonic() + 60
    while not begun():
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait(15)


FIRST = [*people(range(600)), *people(range(600, 700), "washington")]
# Two hundred are new, a hundred move, three hundred change, a hundred are gone.
SECOND = [
    *people(range(300), grade=8),
    *people(range(300, 400), "washington"),
    *people(range(400, 500)),
    *people(range(600, 700), "washington"),
    *people(range(700, 900)),
]


@pytest.fixture
def again(administration):
    """Another administration, into which the same files come in one run."""
    again = type(administration).objects.get(pk=administration.pk)
    again.pk, again.name = None, "again"
    again.save(force_insert=True)
    return again


# In the middle of the new people, of the changes, and of those who are gone.
MIDDLES = {
    "adding": lambda own: own.count() > 740,
    "changing": lambda own: own.filter(grade="08").count() > 60,
    "withdrawing": lambda own: own.exclude(withdrawn_at=None).count() > 0,
}


@pytest.mark.parametrize("middle", MIDDLES)
def test_a_killed_worker_leaves_what_another_run_completes(
    staff, administration, again, middle
):
    applied(staff, administration, FIRST)
    codes = dict(Respondent.objects.values_list("pk", "code_digest"))
    upload = confirmed(staff, administration, SECOND)
    job = uploads.job_of(upload)
    own = Respondent.objects.filter(administration=administration)
    process = worker(job)
    killed_once(process, lambda: MIDDLES[middle](own))
    half = as_they_are(administration)

    Job.objects.filter(pk=job.pk).update(
        heartbeat_at=timezone.now() - timedelta(minutes=5)
    )
    jobs.run(job.pk)
    job.refresh_from_db()
    upload.refresh_from_db()
    assert (job.state, job.attempts, upload.state) == ("done", 2, "applied")

    applied(staff, again, FIRST)
    applied(staff, again, SECOND)
    whole = as_they_are(again)
    assert as_they_are(administration) == whole != half
    assert len(whole) == 900
    # Nobody was given another code by it, and none is there twice.
    kept = dict(Respondent.objects.values_list("pk", "code_digest"))
    assert {pk: bytes(kept[pk]) for pk in codes} == {
        pk: bytes(code) for pk, code in codes.items()
    }
    # What was confirmed is what the page goes on to show.
    assert upload.report["added"] == 200 and upload.withdrawn == 100


def test_run_again_after_it_was_applied_it_does_nothing(staff, administration):
    upload = applied(staff, administration, FIRST)
    before = list(Respondent.objects.order_by("pk").values())
    job = uploads.job_of(upload)
    Job.objects.filter(pk=job.pk).update(state="waiting", ended_at=None)
    jobs.run(job.pk)
    assert list(Respondent.objects.order_by("pk").values()) == before


def test_a_worker_that_ends_leaves_the_rest_to_another(
    staff, administration, monkeypatch
):
    monkeypatch.setattr(apply, "ADD_AT_ONCE", 20)
    upload = confirmed(staff, administration, people(range(200)))
    job = uploads.job_of(upload)
    write = apply.write_changes

    def ended(diff, tell):
        def and_stop(step, done):
            jobs.stop_this_worker()
            tell(step, done)

        write(diff, and_stop)

    with monkeypatch.context() as deploy:
        deploy.setattr(uploads, "write_changes", ended)
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


def test_a_database_that_was_away_costs_nothing(staff, administration, monkeypatch):
    upload = confirmed(staff, administration, people(range(20)))
    job = uploads.job_of(upload)

    def away(*_):
        raise OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as failover:
        failover.setattr(uploads, "write_changes", away)
        jobs.run(job.pk)
    upload.refresh_from_db()
    assert upload.state == "applying"
    jobs.run(job.pk)
    upload.refresh_from_db()
    assert upload.state == "applied"


# Two at a time --------------------------------------------------------------


def in_threads(*works):
    errors = []

    def run(work):
        try:
            work()
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    return threads, errors


@needs_postgresql
def test_two_rosters_at_once_come_one_after_the_other(
    staff, administration, monkeypatch
):
    one = confirmed(staff, administration, people(range(300)))
    two = confirmed(staff, administration, people(range(200, 500)))
    steps = []
    write = apply.write_changes

    def noted(diff, tell):
        steps.append("begin")
        write(diff, tell)
        steps.append("end")

    monkeypatch.setattr(uploads, "write_changes", noted)
    jobs_of_both = [uploads.job_of(upload).pk for upload in (one, two)]
    threads, errors = in_threads(*[partial(jobs.run, pk) for pk in jobs_of_both])
    for thread in threads:
        thread.join(60)

    assert not errors
    states = sorted(RosterUpload.objects.values_list("state", flat=True))
    # The later one would withdraw who came by the first: it asks again.
    assert states == ["applied", "checked"]
    assert steps == ["begin", "end"]
    assert Respondent.objects.filter(withdrawn_at=None).count() == 300


# People answer meanwhile ----------------------------------------------------


def slow_machine(monkeypatch):
    """On which each changed row costs half a millisecond more."""
    update = apply._update

    def slowly(writer, table, key, columns):
        update(writer, table, key, columns)
        if table == "survey_respondent":
            [(rows,)] = writer.all("SELECT count(*) FROM roster_batch")
            time.sleep(rows / 2000)

    monkeypatch.setattr(apply, "_update", slowly)


def saves_while(work, administration, pk):
    """How long saves of one person took, while something else was done."""
    threads, errors = in_threads(work)
    seconds, refused, revision = [], [], 10**15
    item = next(iter(Response.objects.values_list("item_id", flat=True)), 1)
    while threads[0].is_alive():
        revision += 1
        start = time.monotonic()
        try:
            receipt = save_page(
                administration_id=administration.pk,
                respondent_id=pk,
                issue=1,
                revision=revision,
                rows=[AnswerRow(item, "a", "3")],
            )
            assert receipt.outcome is Outcome.SAVED
        except OperationalError as error:
            refused.append(str(error))
        seconds.append(time.monotonic() - start)
    assert not errors
    return seconds, refused


LARGE = 4000


@needs_postgresql
def test_no_save_is_refused_while_a_large_roster_changes_everybody(
    staff, administration, monkeypatch
):
    applied(staff, administration, people(range(LARGE)))
    upload = confirmed(staff, administration, people(range(LARGE), grade=8))
    slow_machine(monkeypatch)
    someone = Respondent.objects.order_by("pk")[LARGE // 2].pk
    job = uploads.job_of(upload)

    seconds, refused = saves_while(lambda: jobs.run(job.pk), administration, someone)

    assert Respondent.objects.filter(grade="08").count() == LARGE
    assert refused == []
    assert len(seconds) > 100
    assert max(seconds) < 1


@needs_postgresql
def test_in_one_transaction_it_would_refuse_them(staff, administration, monkeypatch):
    """The twin."""
    applied(staff, administration, people(range(LARGE)))
    upload = confirmed(staff, administration, people(range(LARGE), grade=8))
    slow_machine(monkeypatch)
    monkeypatch.setattr(apply, "CHANGE_AT_ONCE", LARGE)
    someone = Respondent.objects.order_by("pk")[LARGE // 2].pk
    job = uploads.job_of(upload)

    _, refused = saves_while(lambda: jobs.run(job.pk), administration, someone)

    assert any("lock timeout" in one for one in refused)


@needs_postgresql
def test_a_person_who_is_locked_is_waited_for(staff, administration):
    """A batch lets go of the others meanwhile, and tries again."""
    applied(staff, administration, people(range(50)))
    upload = confirmed(staff, administration, people(range(50), grade=8))
    held, over = threading.Event(), threading.Event()

    def hold():
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT 1 FROM survey_respondent LIMIT 1 FOR SHARE")
            held.set()
            over.wait(2)
            cursor.execute("COMMIT")

    threads, errors = in_threads(hold)
    held.wait(5)
    jobs.run(uploads.job_of(upload).pk)
    over.set()
    threads[0].join(10)
    assert not errors
    upload.refresh_from_db()
    assert upload.state == "applied"
    assert Respondent.objects.filter(grade="08").count() == 50
