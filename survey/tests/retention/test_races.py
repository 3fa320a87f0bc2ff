"""Destroy data while others save, read, erase, place holds or apply rosters."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from survey.models import Destruction, Identity, Response
from survey.people.erasing.erase import erase_person, order_erasure
from survey.people.retention import destroy as destroying
from survey.people.retention.orders import order_destruction
from survey.people.rosters.staging import open_staging
from survey.taking.storage import Outcome
from survey.tests.erasing.conftest import ASKED
from survey.tests.erasing.test_erase import publish_round
from survey.tests.erasing.test_races import A_WHILE, elsewhere, save, started
from survey.tests.people import invite
from survey.tests.retention.conftest import ANSWERS, NAMES, hold, job_of, run
from survey.work import jobs

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not settings.SERVERS, reason="SQLite has one writer at a time"),
]


@pytest.fixture
def noor(filled, staff):
    """Somebody of another round, which is open."""
    fall = publish_round(filled, "fall")
    fall.closes_at = timezone.now() + timedelta(days=3)
    fall.save(update_fields=["closes_at"])
    return invite(fall, staff.roosevelt, "00777", "Noor Haddad")


def run_job(destruction: Destruction) -> None:
    jobs.run(job_of(destruction).pk)


def is_done(destruction: Destruction) -> bool:
    destruction.refresh_from_db()
    return destruction.state == Destruction.State.DONE


def timed_save(respondent, revision) -> float:
    begin = time.monotonic()
    assert save(respondent, revision) is Outcome.SAVED
    return time.monotonic() - begin


def test_a_save_to_another_round_waits_for_nothing(filled, noor):
    """Somebody reads the answers that are destroyed, so that destroying has to wait."""
    destruction = order_destruction(filled, ANSWERS)
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            assert Response.objects.filter(administration_id=filled.pk).exists()
            late = threads.submit(elsewhere(lambda: run_job(destruction)))
            time.sleep(A_WHILE)
            with ThreadPoolExecutor(1) as savers:
                saves = [
                    savers.submit(elsewhere(lambda n=n: timed_save(noor, n))).result()
                    for n in range(1, 4)
                ]
            assert not late.done()
        late.result()
    assert is_done(destruction)
    assert max(saves) < A_WHILE / 2
    assert not Response.objects.filter(administration_id=filled.pk).exists()


def test_a_lock_on_the_table_of_all_saves_would_hold_them_up(filled, noor):
    """The twin: dropping the partition takes this lock, here without a time limit."""

    def drop() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = 0")
            cursor.execute("LOCK TABLE survey_response IN ACCESS EXCLUSIVE MODE")

    with ThreadPoolExecutor(2) as threads:
        with transaction.atomic():
            assert Response.objects.filter(administration_id=filled.pk).exists()
            waiting = threads.submit(elsewhere(drop))
            time.sleep(A_WHILE)
            late = threads.submit(elsewhere(lambda: timed_save(noor, 1)))
            time.sleep(A_WHILE)
            assert not late.done()
        waiting.result()
        assert late.result() > A_WHILE / 2


def test_a_reader_that_stays_does_not_end_the_destruction(filled, monkeypatch):
    """It is given up whole, and started again."""
    monkeypatch.setattr(destroying, "TRIES", 2)
    destruction = order_destruction(filled, ANSWERS)
    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        assert Response.objects.filter(administration_id=filled.pk).exists()
        threads.submit(elsewhere(lambda: run_job(destruction))).result()
    assert not is_done(destruction)
    assert destruction.tables == {}
    assert Response.objects.filter(administration_id=filled.pk).count() == 2
    job = job_of(destruction)
    job.heartbeat_at = None
    job.save(update_fields=["heartbeat_at"])
    run(destruction)
    assert is_done(destruction)


def test_nothing_is_saved_between_the_digest_and_the_end(filled, maya):
    """A save in flight of a person who was late: it waits, and is refused.

    Somebody reads, so that the answers are digested and not yet destroyed.
    """
    destruction = order_destruction(filled, ANSWERS)

    def write() -> int:
        rows = Response.objects.filter(respondent_id=maya.pk)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = 0")
            return rows.update(value="late")

    with ThreadPoolExecutor(2) as threads:
        with transaction.atomic():
            assert Response.objects.filter(administration_id=filled.pk).exists()
            late = threads.submit(elsewhere(lambda: run_job(destruction)))
            time.sleep(A_WHILE)
            writing = threads.submit(elsewhere(write))
            time.sleep(A_WHILE)
            assert not late.done() and not writing.done()
        late.result()
        assert writing.result() == 0
    assert is_done(destruction)
    assert destruction.tables["survey_response"]["rows"] == 2


def test_a_hold_does_not_wait_while_answers_are_read_and_stops_it(filled, staff):
    """Somebody writes, so that the job is where it reads answers."""
    destruction = order_destruction(filled, ANSWERS)
    table = f"survey_response_{filled.pk}"
    with ThreadPoolExecutor(2) as threads:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE")
            late = threads.submit(elsewhere(lambda: run_job(destruction)))
            time.sleep(A_WHILE)
            threads.submit(elsewhere(lambda: hold(filled, staff))).result(A_WHILE)
            assert not late.done()
        late.result()
    assert not is_done(destruction)
    assert "general counsel" in job_of(destruction).message
    assert Response.objects.filter(administration_id=filled.pk).count() == 2


def test_names_wait_for_a_roster(filled):
    destruction = order_destruction(filled, NAMES)
    with open_staging() as staging:
        staging.lock(filled.pk)
        with ThreadPoolExecutor(1) as threads:
            late = threads.submit(elsewhere(lambda: run_job(destruction)))
            time.sleep(A_WHILE)
            assert not late.done()
            assert Identity.objects.filter(administration=filled).count() == 2
            staging.execute("ROLLBACK")
            late.result()
    assert is_done(destruction)


def slow_batches(monkeypatch) -> None:
    people = destroying._destroy_people

    def slowly(*args: object) -> None:
        people(*args)
        time.sleep(2 * A_WHILE)

    monkeypatch.setattr(destroying, "_destroy_people", slowly)


def test_a_hold_waits_for_a_batch_and_stops_the_next(filled, staff, monkeypatch):
    monkeypatch.setattr(destroying, "BATCH", 1)
    slow_batches(monkeypatch)
    destruction = order_destruction(filled, NAMES)
    with started(lambda: run_job(destruction)) as future:
        begin = time.monotonic()
        hold(filled, staff)
        waited = time.monotonic() - begin
        future.result()
    assert waited > A_WHILE / 2
    assert not is_done(destruction)
    assert Identity.objects.filter(administration=filled).count() == 1


def test_saves_of_another_round_go_on_beside_names(filled, noor, monkeypatch):
    slow_batches(monkeypatch)
    destruction = order_destruction(filled, NAMES)
    with started(lambda: run_job(destruction)) as future:
        assert timed_save(noor, 1) < A_WHILE / 2
        assert not future.done()
        future.result()
    assert is_done(destruction)


def test_erasing_a_person_waits_for_a_batch(filled, staff, maya, monkeypatch):
    erasure = order_erasure([maya.pk], ASKED, by=staff.dana)
    slow_batches(monkeypatch)
    destruction = order_destruction(filled, NAMES)
    with started(lambda: run_job(destruction)) as future:
        erase_person(erasure.records.get(), erasure)
        future.result()
    maya.refresh_from_db()
    assert is_done(destruction) and maya.erased_at is not None
    answers = Response.objects.filter(administration_id=filled.pk)
    assert answers.count() == 1


def test_two_workers_destroy_once(filled):
    destruction = order_destruction(filled, NAMES)
    with ThreadPoolExecutor(2) as threads:
        both = [
            threads.submit(elsewhere(lambda: destroying.destroy_batch(destruction)))
            for _ in range(2)
        ]
        assert sorted(future.result() for future in both) == [0, 2]
    run(destruction)
    assert destruction.tables["survey_identity"]["rows"] == 2
