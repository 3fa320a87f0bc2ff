"""Starts without an answer are deleted after the closing; no answer ever is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.permissions import Permissions
from settings.tests.patience import patience
from survey.fieldwork.administrations import reopen_administration
from survey.fieldwork.open_codes import empty_starts
from survey.fieldwork.open_codes.empty_starts import (
    KEPT_AFTER_CLOSING,
    delete_empty_starts,
)
from survey.fieldwork.open_codes.figures import figures_of
from survey.models import (
    Administration,
    DeviceLogin,
    OpenCode,
    OpenCodeSeat,
    Respondent,
    Response,
)
from survey.taking.storage import AnswerRow, Outcome, save_page
from survey.tests.conftest import FIRST_PAGE, Browser, enrol
from survey.tests.open_codes.cast import begin, open_code

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
in_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="has one writer"
)


def start(code) -> Browser:
    browser = Browser()
    assert begin(browser, code).status_code == 302
    return browser


def person(browser: Browser) -> int:
    return browser.session["taking"]["respondent_id"]


def close(administration: Administration, *, ago: timedelta) -> None:
    now = timezone.now()
    Administration.objects.filter(pk=administration.pk).update(
        opens_at=now - ago - timedelta(days=30), closes_at=now - ago
    )


LONG_AGO = KEPT_AFTER_CLOSING + timedelta(minutes=1)


def test_starts_without_an_answer_are_deleted_after_the_closing(parents, lincoln):
    unlimited = open_code(parents, lincoln)
    limited = open_code(parents, lincoln, limit=3)
    answering, looking, seated = start(unlimited), start(unlimited), start(limited)
    base = answering.bootstrap()["revision"]
    assert answering.save(1, FIRST_PAGE, base).status_code == 200
    on_roster = enrol(parents, lincoln)

    assert delete_empty_starts() == 0
    close(parents, ago=KEPT_AFTER_CLOSING - timedelta(minutes=1))
    assert delete_empty_starts() == 0
    close(parents, ago=LONG_AGO)
    assert delete_empty_starts() == 2

    left = set(Respondent.objects.values_list("pk", flat=True))
    assert left == {person(answering), on_roster.pk}
    assert not left & {person(looking), person(seated)}
    assert set(DeviceLogin.objects.values_list("respondent", flat=True)) <= left
    assert not OpenCodeSeat.objects.exclude(respondent=None).exists()
    assert Response.objects.filter(respondent_id=person(answering)).exists()
    for code in (unlimited, limited):
        code.refresh_from_db()
        assert code.empty_starts_deleted == 1
    entry = AuditEntry.objects.get(action="delete starts without answers")
    assert (entry.by, entry.after) == ("delete_empty_starts", {"starts": 2})
    assert delete_empty_starts() == 0


def test_other_administrations_keep_their_starts(parents, code, lincoln):
    start(code)
    closed = Administration.objects.get(pk=parents.pk)
    closed.pk, closed.name = None, "closed-parents"
    closed.save()
    close(closed, ago=LONG_AGO)
    assert delete_empty_starts() == 0
    assert Respondent.objects.count() == 1


def test_a_page_that_was_left_blank_keeps_its_person(parents, code):
    browser = start(code)
    base = browser.bootstrap()["revision"]
    blank = dict.fromkeys(FIRST_PAGE)
    assert browser.save(1, blank, base).status_code == 200
    close(parents, ago=LONG_AGO)
    assert delete_empty_starts() == 0


def test_the_share_of_empty_starts_stays_known(staff, parents):
    code = open_code(parents, staff.lincoln)
    answering = start(code)
    start(code)
    base = answering.bootstrap()["revision"]
    assert answering.save(1, FIRST_PAGE, base).status_code == 200
    close(parents, ago=LONG_AGO)

    def figures():
        codes = OpenCode.objects.select_related("school", "administration")
        return figures_of(list(codes), Permissions(staff.dana))[code.pk]

    before = figures()
    assert (before.starts, before.answered, before.empty_percent) == (2, 1, 50)
    assert delete_empty_starts() == 1
    assert (figures().starts, figures().empty_percent) == (2, 50)


def test_they_are_deleted_in_batches(parents, code, monkeypatch):
    monkeypatch.setattr(empty_starts, "BATCH", 2)
    for _ in range(5):
        start(code)
    close(parents, ago=LONG_AGO)
    assert delete_empty_starts() == 5
    code.refresh_from_db()
    assert code.empty_starts_deleted == 5


def test_an_unsent_page_arrives_after_a_late_reopening(parents, code):
    browser = start(code)
    base = browser.bootstrap()["revision"]
    # The last day on which a browser still keeps it.
    close(parents, ago=timedelta(days=7))
    delete_empty_starts()
    reopen_administration(
        administration=parents,
        closes_at=timezone.now() + timedelta(days=1),
        seen=None,
        by="a test",
    )
    assert browser.save(1, FIRST_PAGE, base).status_code == 200


def test_after_a_reopening_the_next_closing_counts(parents, code):
    start(code)
    close(parents, ago=LONG_AGO)
    assert delete_empty_starts() == 1
    reopen_administration(
        administration=parents,
        closes_at=timezone.now() + timedelta(days=1),
        seen=None,
        by="a test",
    )
    start(code)
    assert delete_empty_starts() == 0
    # As though the first deletion were longer ago than the second closing.
    close(parents, ago=LONG_AGO)
    before = timezone.now() - timedelta(days=60)
    Administration.objects.update(empty_starts_deleted_at=before)
    assert delete_empty_starts() == 1


# Races, over real connections -------------------------------------------------------


@contextmanager
def in_another_connection(act: Callable[[], object]) -> Iterator[threading.Thread]:
    """Run a function in a thread, and end the thread with the block."""

    def run() -> None:
        try:
            act()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(patience(30))
        assert not thread.is_alive()


def is_waiting_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()"
        )
        return cursor.fetchone()[0] > 0


def eventually(condition: Callable[[], bool]) -> None:
    over = threading.Event()
    for _ in range(int(patience(30) * 50)):
        if condition():
            return
        over.wait(0.02)
    raise AssertionError("never became true")


@contextmanager
def save_in_flight(parents, respondent: int) -> Iterator[Callable[[], None]]:
    """Store an answer and commit it only when the yielded function is called."""
    item = parents.published.survey.items.first().pk
    saved, go_on = threading.Event(), threading.Event()
    outcomes = []

    def save() -> None:
        with transaction.atomic():
            receipt = save_page(
                administration_id=parents.pk,
                respondent_id=respondent,
                issue=1,
                revision=1,
                rows=[AnswerRow(item, "a", "1")],
            )
            outcomes.append(receipt.outcome)
            saved.set()
            assert go_on.wait(patience(30))

    with in_another_connection(save) as thread:
        assert saved.wait(patience(30))

        def commit() -> None:
            go_on.set()
            thread.join(patience(30))
            assert outcomes == [Outcome.SAVED]

        try:
            yield commit
        finally:
            go_on.set()


NAIVE = """
DELETE FROM survey_respondent r
WHERE r.open_code_id IS NOT NULL AND NOT EXISTS (
    SELECT FROM survey_response x
    WHERE x.administration_id = r.administration_id AND x.respondent_id = r.id)
"""


@in_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_save_in_flight_keeps_its_person(parents, code):
    respondent = person(start(code))
    with save_in_flight(parents, respondent) as commit:
        close(parents, ago=LONG_AGO)
        assert delete_empty_starts() == 0
        commit()
    assert Respondent.objects.filter(pk=respondent).exists()
    Administration.objects.update(empty_starts_deleted_at=None)
    assert delete_empty_starts() == 0
    assert Response.objects.filter(respondent_id=respondent).exists()


@in_postgresql
@pytest.mark.django_db(transaction=True)
def test_without_the_protection_the_answer_loses_its_person(parents, code):
    respondent = person(start(code))

    def delete() -> None:
        with connection.cursor() as cursor:
            cursor.execute(NAIVE)

    with save_in_flight(parents, respondent) as commit:
        close(parents, ago=LONG_AGO)
        with in_another_connection(delete):
            eventually(is_waiting_for_a_lock)
            commit()
    assert Response.objects.filter(respondent_id=respondent).exists()
    assert not Respondent.objects.filter(pk=respondent).exists()


def reopen_while(parents, delete: Callable[[], object]) -> None:
    """Reopen; before this is committed, start the deletion and see it wait or end."""
    with transaction.atomic():
        reopen_administration(
            administration=parents,
            closes_at=timezone.now() + timedelta(days=1),
            seen=None,
            by="a test",
        )
        ended = threading.Event()

        def run() -> None:
            delete()
            ended.set()

        thread = threading.Thread(target=lambda: (run(), connection.close()))
        thread.start()
        eventually(lambda: ended.is_set() or is_waiting_for_a_lock())
    thread.join(patience(30))
    assert ended.is_set()


@in_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_reopening_at_that_moment_keeps_unsent_pages_welcome(parents, code):
    browser = start(code)
    base = browser.bootstrap()["revision"]
    close(parents, ago=LONG_AGO)
    reopen_while(parents, delete_empty_starts)
    assert browser.save(1, FIRST_PAGE, base).status_code == 200


@in_postgresql
@pytest.mark.django_db(transaction=True)
def test_without_the_lock_a_reopening_loses_them(parents, code):
    browser = start(code)
    base = browser.bootstrap()["revision"]
    close(parents, ago=LONG_AGO)
    migration = import_module("survey.migrations.0004_functions_of_roles")
    function = migration.DELETE_EMPTY_STARTS
    twin = function.replace("survey_delete_empty_starts", "delete_unlocked")
    assert "\n    FOR SHARE;" in twin

    def delete() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT delete_unlocked(%s, %s, 0, 10)",
                [parents.pk, timezone.now() - KEPT_AFTER_CLOSING],
            )

    with connection.cursor() as cursor:
        cursor.execute(twin.replace("\n    FOR SHARE;", ";"), None)
    try:
        reopen_while(parents, delete)
        assert browser.save(1, FIRST_PAGE, base).status_code != 200
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION delete_unlocked")


@in_postgresql
def test_the_database_deletes_nothing_while_a_page_may_arrive(parents, code):
    start(code)
    close(parents, ago=timedelta(days=6, hours=23))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM survey_delete_empty_starts(%s, 'infinity', 0, 10)",
            [parents.pk],
        )
        assert cursor.fetchone() == (0, None)
    assert Respondent.objects.count() == 1
