"""Erase a person at the same moment as others change the person, in each order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.core import signing
from django.db import connection, transaction
from django.utils import timezone

from survey.models import (
    Administration,
    ErasedRecord,
    Identity,
    Job,
    RecordJoin,
    Respondent,
    Response,
)
from survey.people.access_codes import code_of
from survey.people.erasing import erase
from survey.people.erasing.deletion import Deletion
from survey.people.erasing.erase import erase_person, order_erasure
from survey.people.erasing.erased_ids import SKIPPED
from survey.people.merging import joins
from survey.people.merging.joins import GONE, request_join
from survey.people.rosters.staging import open_staging
from survey.taking import completion, next_part
from survey.taking.login import log_in_respondent
from survey.taking.storage import AnswerRow, Outcome, save_page
from survey.tests.erasing.conftest import ASKED
from survey.tests.opt_outs.test_modules import module
from survey.tests.people import invite
from survey.tests.rosters.roster_imports import run_import
from survey.work import jobs

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not settings.SERVERS, reason="SQLite has one writer at a time"),
]

__all__ = ["module"]

HEADER = "district,school,student ID,given name,family name,grade"
MAYA = "riverside,lincoln,00123,Maya,Zaragoza,7"
# Seconds. Longer than erasing takes, shorter than any lock's timeout.
A_WHILE = 0.5


def elsewhere(function: Callable[[], object]) -> Callable[[], object]:
    """Run the function on a connection of its own."""

    def run() -> object:
        try:
            return function()
        finally:
            connection.close()

    return run


@contextmanager
def started(function: Callable[[], object]) -> Iterator[Future]:
    """Start a function in a thread, and wait for its end after the block."""
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(elsewhere(function))
        time.sleep(A_WHILE)
        yield future


def save(respondent: Respondent, revision: int = 1) -> Outcome:
    item = respondent.administration.published.survey.items.get(name="comment")
    return save_page(
        administration_id=respondent.administration_id,
        respondent_id=respondent.pk,
        issue=respondent.issue,
        revision=revision,
        rows=[AnswerRow(item.pk, "a", "mine")],
    ).outcome


def finish(respondent: Respondent, answers: int = 1) -> bool:
    session = log_in_respondent(code_of(respondent))
    reviewed = {"r": answers, "n": answers, "who": respondent.pk}
    return completion.finish(session, signing.dumps(reviewed, salt=completion.SALT))


@pytest.fixture
def in_hand(administration, staff, maya):
    """Maya has started, and is to be erased."""
    log_in_respondent(code_of(maya))
    erasure = order_erasure([maya.pk], ASKED, by=staff.dana)
    return erasure.records.get()


def begin(module: Administration, person: Respondent) -> next_part.BegunPart | None:
    """Go on to a module, as a person whose page was shown before."""
    columns = ("school_id", "grade", "language", "attributes")
    shown = {column: getattr(person, column) for column in columns}
    part = next_part.NextPart(module.pk, module.published.digest, shown, None)
    return next_part._start(part, person.pk, timezone.now())


@contextmanager
def erasing_until_the_end(monkeypatch, record: ErasedRecord) -> Iterator[Future]:
    """Keep the transaction that erases open for a while."""
    forget = erase.erased_ids.remember

    def slowly(*args: object) -> None:
        forget(*args)
        time.sleep(2 * A_WHILE)

    monkeypatch.setattr(erase.erased_ids, "remember", slowly)
    with started(lambda: erase_person(record, record.erasure)) as future:
        assert not future.done()
        yield future
    future.result()


def is_erased(respondent: Respondent) -> bool:
    row = Respondent.objects.get(pk=respondent.pk)
    answers = Response.objects.filter(respondent_id=respondent.pk)
    names = Identity.objects.filter(pk=respondent.pk)
    return bool(row.erased_at) and not answers.exists() and not names.exists()


def test_a_save_waits_for_the_erasing_and_is_refused(maya, in_hand, monkeypatch):
    assert save(maya) is Outcome.SAVED
    with erasing_until_the_end(monkeypatch, in_hand) as erasing:
        assert save(maya, 2) is Outcome.WITHDRAWN
        erasing.result()
    assert is_erased(maya)


def test_erasing_waits_for_a_save_and_deletes_it(maya, in_hand):
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            assert save(maya) is Outcome.SAVED
            late = threads.submit(
                elsewhere(lambda: erase_person(in_hand, in_hand.erasure))
            )
            time.sleep(A_WHILE)
            assert not late.done()
        late.result()
    assert is_erased(maya)


def test_without_the_lock_a_save_would_leave_an_answer(maya, in_hand, monkeypatch):
    """The twin: nothing waits for the save that is under way."""
    monkeypatch.setattr(erase, "lock_respondents", list)
    monkeypatch.setattr(erase, "_empty_record", lambda *_: None)
    monkeypatch.setattr(erase, "keep_groups_of_withdrawn", lambda *_: None)

    def delete_without_mark(respondent: int, *_: object) -> Deletion:
        answers = Response.objects.filter(respondent_id=respondent)
        deletion = Deletion()
        deletion.rows["survey_response"] = answers._raw_delete(answers.db)
        return deletion

    monkeypatch.setattr(erase, "delete_rows", delete_without_mark)
    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        assert save(maya) is Outcome.SAVED
        late = threads.submit(elsewhere(lambda: erase_person(in_hand, in_hand.erasure)))
        late.result()
    assert Response.objects.filter(respondent_id=maya.pk).exists()


def test_finishing_waits_for_the_erasing_and_is_refused(maya, in_hand, monkeypatch):
    session = log_in_respondent(code_of(maya))
    reviewed = {"r": 0, "n": 0, "who": maya.pk}
    signed = signing.dumps(reviewed, salt=completion.SALT)
    with erasing_until_the_end(monkeypatch, in_hand) as erasing:
        assert not completion.finish(session, signed)
        erasing.result()
    maya.refresh_from_db()
    assert is_erased(maya) and maya.completed_at is None


def test_a_finished_person_is_erased(maya, in_hand):
    save(maya)
    assert finish(maya)
    erase_person(in_hand, in_hand.erasure)
    assert is_erased(maya)


def test_erasing_waits_for_a_roster_and_the_roster_for_the_erasing(
    administration, maya, in_hand, monkeypatch
):
    with open_staging() as staging:
        staging.lock(administration.pk)
        with ThreadPoolExecutor(1) as threads:
            late = threads.submit(
                elsewhere(lambda: erase_person(in_hand, in_hand.erasure))
            )
            time.sleep(A_WHILE)
            assert not late.done() and not is_erased(maya)
            staging.execute("ROLLBACK")
            late.result()
    assert is_erased(maya)


def test_a_roster_that_waited_skips_the_person(
    administration, maya, in_hand, monkeypatch
):
    with erasing_until_the_end(monkeypatch, in_hand) as erasing:
        report = run_import(administration, HEADER, MAYA)
        erasing.result()
    assert (report.added, report.changed) == (0, 0)
    assert report.notes == {SKIPPED: 1}
    assert is_erased(maya)


@pytest.fixture
def twin(administration, staff):
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])
    return invite(administration, staff.lincoln, "A-77", "Maya Zaragoza")


def run_join(created: RecordJoin) -> None:
    jobs.run(Job.objects.get(kind=joins.KIND, subject_id=created.pk).pk)


def test_records_that_were_joined_first_are_both_erased(maya, twin, staff, in_hand):
    joined = request_join(twin, maya, by=staff.dana)
    run_join(joined)
    joined.refresh_from_db()
    assert joined.state == "joined", joined.message
    erase_person(in_hand, in_hand.erasure)
    assert is_erased(maya) and is_erased(twin)


def test_a_join_that_waited_finds_nobody(maya, twin, staff, in_hand, monkeypatch):
    joined = request_join(twin, maya, by=staff.dana)
    with erasing_until_the_end(monkeypatch, in_hand) as erasing:
        run_join(joined)
        erasing.result()
    job = Job.objects.get(kind=joins.KIND, subject_id=joined.pk)
    assert job.message == GONE
    assert is_erased(maya) and not is_erased(twin)


def test_two_erasures_of_one_person_do_not_wait_for_each_other(maya, in_hand):
    with ThreadPoolExecutor(2) as threads:
        both = [
            threads.submit(elsewhere(lambda: erase_person(in_hand, in_hand.erasure)))
            for _ in range(2)
        ]
    for future in both:
        future.result()
    assert is_erased(maya)


def begin_before_the_lock(monkeypatch, module, person) -> None:
    """Let the person go on to a module between the look-up and the lock."""
    lock, begun = erase.lock_respondents, []

    def late(*args: object) -> list[Respondent]:
        if not begun:
            begun.append(module)
            with ThreadPoolExecutor(1) as threads:
                threads.submit(elsewhere(lambda: begin(module, person))).result()
        return lock(*args)

    monkeypatch.setattr(erase, "lock_respondents", late)


def test_a_module_begun_during_the_look_up_is_erased(
    maya, module, in_hand, monkeypatch
):
    begin_before_the_lock(monkeypatch, module, maya)
    erase_person(in_hand, in_hand.erasure)
    assert is_erased(maya) and is_erased(module.respondents.get())


def test_without_the_look_behind_the_lock_the_module_would_remain(
    maya, module, in_hand, monkeypatch
):
    """The twin: records are those of the look-up before."""
    begin_before_the_lock(monkeypatch, module, maya)
    monkeypatch.setattr(erase, "add_modules", lambda *_: False)
    erase_person(in_hand, in_hand.erasure)
    assert is_erased(maya)
    assert module.respondents.get().erased_at is None


@pytest.fixture
def row_is_free(maya, module, monkeypatch) -> list[bool]:
    """Whether the person's row was free when the module's roster lock was asked for."""
    lock, free = erase.advisory_locks.lock, []

    def try_row() -> None:
        row = Respondent.objects.filter(pk=maya.pk)
        with transaction.atomic():
            free.append(bool(row.select_for_update(skip_locked=True)))

    def lock_and_look(kind: int, key: int) -> None:
        if key == module.pk:
            with ThreadPoolExecutor(1) as threads:
                threads.submit(elsewhere(try_row)).result()
        lock(kind, key)

    monkeypatch.setattr(erase.advisory_locks, "lock", lock_and_look)
    return free


def test_pages_are_saved_while_a_modules_roster_is_waited_for(
    maya, module, in_hand, monkeypatch, row_is_free
):
    begin_before_the_lock(monkeypatch, module, maya)
    erase_person(in_hand, in_hand.erasure)
    assert row_is_free == [True]
    assert is_erased(maya) and is_erased(module.respondents.get())


def test_without_the_savepoint_they_would_wait(
    maya, module, in_hand, monkeypatch, row_is_free
):
    """The twin."""
    begin_before_the_lock(monkeypatch, module, maya)
    monkeypatch.setattr(erase.transaction, "savepoint_rollback", lambda _point: None)
    erase_person(in_hand, in_hand.erasure)
    assert row_is_free == [False]


def test_a_person_is_looked_up_once(maya, django_assert_num_queries):
    with django_assert_num_queries(8):
        erase.person_of(maya)


def test_a_module_waits_for_the_erasing_and_is_refused(
    maya, module, in_hand, monkeypatch
):
    with erasing_until_the_end(monkeypatch, in_hand) as erasing:
        assert begin(module, maya) is None
        assert erasing.result() is None
    assert is_erased(maya)
    assert not module.respondents.exists()


def test_without_the_persons_lock_a_module_would_begin_beside_the_erasing(
    maya, module, in_hand, monkeypatch
):
    """The twin: it does not wait, and sees the person as before."""
    monkeypatch.setattr(next_part, "START", next_part.START_UNLOCKED)
    with erasing_until_the_end(monkeypatch, in_hand) as erasing:
        assert begin(module, maya) is not None
        assert not erasing.done()
    assert is_erased(maya)
    assert module.respondents.get().erased_at is None
