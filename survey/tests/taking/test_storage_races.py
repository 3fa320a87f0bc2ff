"""Saves concurrent with other changes, over real connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.utils import timezone

from settings.tests.patience import patience
from survey.models import Administration, Respondent, Response
from survey.people.new_codes import reissue
from survey.taking import storage
from survey.taking.declining import decline
from survey.taking.session import RespondentSession
from survey.taking.storage import AnswerRow, Outcome, Receipt, save_page

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]

# Seconds. Longer than a local save takes, shorter than any lock's timeout.
A_WHILE = 0.4


def page(answer: str) -> list[AnswerRow]:
    return [AnswerRow(n, "a", answer) for n in (1, 2, 3)]


def save(respondent: Respondent, answer: str, revision: int, issue: int = 1) -> Receipt:
    return save_page(
        administration_id=respondent.administration_id,
        respondent_id=respondent.pk,
        issue=issue,
        revision=revision,
        rows=page(answer),
    )


def elsewhere(function: Callable[[], object]) -> Callable[[], object]:
    """Run the function on a connection of its own."""

    def run() -> object:
        try:
            return function()
        finally:
            connection.close()

    return run


def stored(respondent: Respondent) -> set[tuple[str, int]]:
    rows = Response.objects.filter(respondent_id=respondent.pk)
    return set(rows.values_list("value", "revision"))


def test_concurrent_sends_of_one_page_save_it_once(maya):
    with ThreadPoolExecutor(8) as threads:
        receipts = list(
            threads.map(lambda _: elsewhere(lambda: save(maya, "same", 7))(), range(40))
        )
    assert {receipt.outcome for receipt in receipts} == {Outcome.SAVED}
    assert len({receipt.saved_at for receipt in receipts}) == 1
    assert stored(maya) == {("same", 7)}
    assert Response.objects.count() == 3


def test_of_concurrent_revisions_the_highest_is_stored_whole(maya):
    ready = threading.Barrier(8)

    def send(revision: int) -> object:
        ready.wait(patience(5))
        return elsewhere(lambda: save(maya, f"answer {revision}", revision))()

    for round_ in range(5):
        revisions = [round_ * 100 + n for n in range(1, 9)]
        with ThreadPoolExecutor(8) as threads:
            receipts = dict(zip(revisions, threads.map(send, revisions), strict=True))
        newest = max(revisions)
        assert receipts[newest].outcome is Outcome.SAVED
        assert stored(maya) == {(f"answer {newest}", newest)}


def finishes(respondent: Respondent) -> None:
    now = timezone.now()
    Respondent.objects.filter(pk=respondent.pk).update(started_at=now, completed_at=now)


def declines(respondent: Respondent) -> None:
    Administration.objects.update(allows_declining=True)
    session = RespondentSession(
        administration_id=respondent.administration_id,
        respondent_id=respondent.pk,
        issue=1,
        digest="",
        language="en",
        tag="",
    )
    assert decline(session)


def withdraws(respondent: Respondent) -> None:
    Respondent.objects.filter(pk=respondent.pk).update(withdrawn_at=timezone.now())


def erases(respondent: Respondent) -> None:
    withdraws(respondent)
    Response.objects.filter(respondent_id=respondent.pk).delete()
    Respondent.objects.filter(pk=respondent.pk).delete()


def gets_a_new_code(respondent: Respondent) -> None:
    reissue(respondent=Respondent.objects.get(pk=respondent.pk))


CHANGES = [
    (finishes, Outcome.FINISHED),
    (declines, Outcome.DECLINED),
    (withdraws, Outcome.WITHDRAWN),
    (erases, Outcome.WITHDRAWN),
    (gets_a_new_code, Outcome.REISSUED),
]


def save_during(
    change: Callable[[Respondent], None], respondent: Respondent
) -> tuple[bool, Future]:
    """Start a save before the change is committed, and tell whether it waited."""
    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        change(respondent)
        late = threads.submit(elsewhere(lambda: save(respondent, "late", 7)))
        time.sleep(A_WHILE)
        waited = not late.done()
    return waited, late


@pytest.mark.parametrize(("change", "outcome"), CHANGES)
def test_a_save_waits_for_a_change_of_its_respondent_and_is_refused(
    maya, change, outcome
):
    waited, late = save_during(change, maya)
    assert waited
    assert late.result().outcome is outcome
    assert stored(maya) == set()


@pytest.mark.parametrize(("change", "outcome"), CHANGES)
def test_a_change_of_the_respondent_waits_for_a_save_in_flight(maya, change, outcome):
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            assert save(maya, "in time", 7).outcome is Outcome.SAVED
            late = threads.submit(elsewhere(lambda: change(maya)))
            time.sleep(A_WHILE)
            assert not late.done()
        late.result()
    assert stored(maya) == (set() if change is erases else {("in time", 7)})
    assert save(maya, "later", 8).outcome is outcome


if connection.vendor == "postgresql":
    # SQLite has one writer at a time, whatever the statement says.

    @pytest.mark.parametrize("lock", ["", "FOR KEY SHARE OF r"])
    def test_without_its_lock_a_save_slips_in_after_the_finish(maya, lock, monkeypatch):
        """Without a lock, or with a weaker one, the save does not wait."""
        assert "FOR SHARE OF r" in storage.POSTGRESQL
        weaker = storage.POSTGRESQL.replace("FOR SHARE OF r", lock)
        monkeypatch.setattr(storage, "POSTGRESQL", weaker)
        storage.postgresql_insert.cache_clear()
        try:
            waited, late = save_during(finishes, maya)
            assert not waited
            assert late.result().outcome is Outcome.SAVED
            maya.refresh_from_db()
            assert maya.completed_at is not None
            assert stored(maya) == {("late", 7)}
        finally:
            storage.postgresql_insert.cache_clear()

    def test_an_opened_administration_has_a_partition_of_its_own(maya):
        save(maya, "x", 7)
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT count(*) FROM survey_response_{maya.administration_id}"
            )
            assert cursor.fetchone() == (3,)

    def test_the_database_flushes_before_it_says_saved(db):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT name, setting FROM pg_settings WHERE name IN"
                " ('fsync', 'synchronous_commit', 'full_page_writes')"
            )
            assert dict(cursor.fetchall()) == dict.fromkeys(
                ("fsync", "synchronous_commit", "full_page_writes"), "on"
            )

else:

    def test_the_database_flushes_before_it_says_saved(db):
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous")
            assert cursor.fetchone() == (2,)
            cursor.execute("PRAGMA journal_mode")
            assert cursor.fetchone() == ("wal",)
