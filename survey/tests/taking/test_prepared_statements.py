"""Saving with prepared statements, behind a transaction pooler.

The contract of saving runs once more, with the statement prepared.
"""

from __future__ import annotations

import re

import pytest
from django.db import (
    DatabaseError,
    IntegrityError,
    OperationalError,
    connection,
    transaction,
)
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.fieldwork.administrations.changes import add_partition
from survey.models import Administration, Respondent
from survey.taking import prepared_statements, saved_answers, storage
from survey.taking.storage import AnswerRow, Outcome
from survey.tests.conftest import FIRST_PAGE
from survey.tests.taking.test_save_page import *  # noqa: F403
from survey.tests.taking.test_save_page import (
    ART,
    SPORT,
    save,
    stored,
)

# This test counts statements, and preparing would be one more.
test_pages_of_many_items_are_one_statement = None

if connection.vendor != "postgresql":
    pytest.skip("SQLite keeps its statements itself", allow_module_level=True)


@pytest.fixture(autouse=True)
def prepared_in_transactions(monkeypatch):
    """Use prepared statements in the test's transaction, which an error would end."""

    def asking_first(cursor, text, types, parameters):
        if not connection.in_atomic_block:
            return prepared_statements.execute(cursor, text, types, parameters)
        prepare, execute = prepared_statements.prepared_text(text, types)
        name = prepare.split()[1]
        cursor.execute("SELECT FROM pg_prepared_statements WHERE name = %s", [name])
        if not cursor.fetchall():
            cursor.execute(prepare)
        with transaction.atomic():
            cursor.execute(execute, parameters)

    monkeypatch.setattr(storage, "execute", asking_first)


# Outside of transactions, as pages are saved


outside = pytest.mark.django_db(transaction=True)


def forget_statements() -> None:
    """Make the connection like one that the pooler has just opened."""
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")


def ran(act) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        act()
    return [query["sql"].split()[0] for query in queries]


@outside
def test_the_first_save_on_a_connection_prepares_the_statement(maya):
    forget_statements()
    assert ran(lambda: save(maya, revision=1)) == ["EXECUTE", "PREPARE"]
    assert ran(lambda: save(maya, SPORT, revision=2)) == ["EXECUTE"]
    assert stored(maya) == SPORT
    assert not connection.errors_occurred


@outside
def test_without_preparing_it_no_page_would_be_saved(maya, monkeypatch):
    forget_statements()
    monkeypatch.setattr(prepared_statements, "UNKNOWN", "none")
    with pytest.raises(OperationalError, match="does not exist"):
        save(maya)


@outside
def test_each_number_of_items_has_its_own_statement(maya):
    forget_statements()
    for count in (1, 2, 7):
        rows = [AnswerRow(n, "a", str(n)) for n in range(count)]
        assert save(maya, rows, revision=count).outcome is Outcome.SAVED
        assert save(maya, rows, revision=count).retried
    assert len(stored(maya)) == 7


@outside
def test_the_statement_is_planned_once(maya):
    forget_statements()
    for revision in range(1, 12):
        save(maya, revision=revision)
    with connection.cursor() as cursor:
        cursor.execute("SELECT generic_plans, custom_plans FROM pg_prepared_statements")
        assert cursor.fetchall() == [(6, 5)]


@outside
def test_every_condition_holds_with_a_cached_plan(maya, noor):
    for revision in range(1, 9):
        save(maya, revision=revision)
    assert save(maya, SPORT, revision=3).outcome is Outcome.SUPERSEDED
    unseen = {"revision": 21, "seen": 2}
    assert save(maya, SPORT, **unseen).outcome is Outcome.SUPERSEDED
    assert save(maya, SPORT, **unseen, shown=[2, 7]).outcome is Outcome.SUPERSEDED
    assert save(maya, SPORT, **unseen, shown=[2, 8]).outcome is Outcome.SAVED
    save(maya, revision=22)
    assert save(noor, SPORT, issue=2).outcome is Outcome.REISSUED
    now = timezone.now()
    Respondent.objects.update(started_at=now, completed_at=now)
    assert save(maya, SPORT, revision=9).outcome is Outcome.FINISHED
    assert stored(maya) == ART
    assert stored(noor) == []


@outside
def test_a_refused_save_leaves_the_connection_as_it_was(maya):
    save(maya, revision=10)
    refused = {"revision": 21, "seen": 2}
    assert ran(lambda: save(maya, SPORT, **refused)) == ["EXECUTE", "SELECT"]
    assert not connection.errors_occurred
    assert ran(lambda: save(maya, SPORT, revision=22)) == ["EXECUTE"]


HOSTILE = [
    "it's",
    "\\' OR 1 = 1",
    "'); DROP TABLE survey_response; --",
    "%s %% %(a)s",
    "{1,2}",
    "$1 \n ʼ ’ \u2028",
    "",
    "7",
]


@outside
@pytest.mark.parametrize("text", HOSTILE)
def test_every_text_is_stored_as_it_was_sent(maya, text):
    rows = [AnswerRow(1, "a", text), AnswerRow(2, "s", None)]
    assert save(maya, rows).outcome is Outcome.SAVED
    assert stored(maya) == rows


@outside
def test_texts_that_are_not_examined_would_end_the_statement(maya, monkeypatch):
    monkeypatch.setattr(prepared_statements, "HARMLESS", re.compile(".*"))
    with pytest.raises(DatabaseError):
        save(maya, [AnswerRow(1, "a", "it's")])


@outside
def test_errors_of_the_database_are_raised(maya):
    save(maya)
    with pytest.raises(IntegrityError):
        save(maya, [AnswerRow(1, "s", "left over"), *ART[1:]], revision=11)
    assert stored(maya) == ART


@outside
def test_a_whole_visit_uses_prepared_statements(browser, maya):
    def visit() -> set[str]:
        with CaptureQueriesContext(connection) as queries:
            browser.log_in(maya)
            base = browser.bootstrap()["revision"]
            browser.save(1, FIRST_PAGE, base)
            form = {"reviewed": browser.get("/take/complete/").context["reviewed"]}
            browser.post("/take/complete/", form)
            assert browser.get("/take/complete/").context["is_finished"]
        texts = [query["sql"] for query in queries]
        return {text.split("(")[0] for text in texts if text.startswith("EXECUTE")}

    forget_statements()
    assert len(visit()) == 4
    # By the same person once more: names are known now.
    Respondent.objects.update(completed_at=None)
    assert len(visit()) == 4
    assert not connection.errors_occurred


@outside
def test_a_code_of_bytes_finds_its_person_by_name(maya):
    text, types = "SELECT id FROM survey_respondent WHERE code_digest = %s", ("bytea",)
    with connection.cursor() as cursor:
        digest = bytes(maya.code_digest)
        prepared_statements.execute_where_possible(cursor, text, types, [digest])
        assert cursor.fetchall() == [(maya.pk,)]


@outside
class TestAnotherAdministrationsPartition:
    """Is locked while its answers are destroyed, or it is dropped."""

    @pytest.fixture
    def reviews(self, browser, maya):
        """Review the answers, so often that a plan is cached; return the statuses."""
        browser.log_in(maya)
        browser.save(1, FIRST_PAGE, browser.bootstrap()["revision"])

        def reviews() -> set[int]:
            forget_statements()
            return {browser.get("/take/complete/").status_code for _ in range(12)}

        return reviews

    @pytest.fixture
    def locked(self, administration):
        """Lock the partition of an administration that nobody answers any more."""
        earlier = Administration.objects.create(
            name="students-2026",
            published=administration.published,
            role=administration.role,
            opens_at=administration.opens_at,
            closes_at=administration.closes_at,
        )
        add_partition(earlier)
        partition = f"survey_response_{earlier.pk}"
        another = connection.copy()
        another.set_autocommit(False)
        with another.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {partition} IN ACCESS EXCLUSIVE MODE")
        yield
        another.rollback()
        another.close()

    @pytest.fixture
    def impatient(self):
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
            yield
            cursor.execute("RESET lock_timeout")

    def test_is_not_waited_for(self, locked, impatient, reviews, browser):
        assert reviews() == {200}
        for _ in range(12):
            form = {"reviewed": browser.get("/take/complete/").context["reviewed"]}
            assert browser.post("/take/complete/", form).status_code == 302
            Respondent.objects.update(completed_at=None)

    def test_would_be_waited_for_by_a_plan_for_any_administration(
        self, locked, impatient, reviews, monkeypatch
    ):
        monkeypatch.setattr(
            saved_answers,
            "name_administration",
            lambda text, key: text.replace("{administration}", f"(SELECT {key})"),
        )
        assert reviews() == {503}


class Pool:
    """Connections used by turns, some of which have the statement."""

    def __init__(self, *known: bool | str) -> None:
        self.known = list(known)
        self.ran: list[str] = []
        self.db = connection

    def execute(self, text, parameters=None):
        knows = self.known.pop(0)
        self.ran.append(text.split()[0])
        if text.startswith("DEALLOCATE") and not knows:
            raise self.error(prepared_statements.UNKNOWN)
        if text.startswith("EXECUTE") and knows == "stale":
            raise self.error(prepared_statements.STALE)
        if text.startswith("EXECUTE") and not knows:
            raise self.error(prepared_statements.UNKNOWN)
        if text.startswith("PREPARE") and knows:
            raise self.error(prepared_statements.KNOWN_ALREADY)

    def error(self, code: str) -> DatabaseError:
        error = DatabaseError()
        error.__cause__ = type("Error", (Exception,), {"pgcode": code})()
        return error


@pytest.mark.parametrize(
    ("known", "ran"),
    [
        ([True], "EXECUTE"),
        ([False, False], "EXECUTE PREPARE"),
        ([False, True, True], "EXECUTE PREPARE EXECUTE"),
        ([False, True, False, False], "EXECUTE PREPARE EXECUTE PREPARE"),
        ([False, True] * 3 + [False], "EXECUTE PREPARE " * 3 + "SELECT"),
        # A plan from before a migration, under this release's name.
        (["stale", "stale"], "EXECUTE DEALLOCATE"),
        (["stale", False, True], "EXECUTE DEALLOCATE EXECUTE"),
        ([False, True, "stale", "stale"], "EXECUTE PREPARE EXECUTE DEALLOCATE"),
        (["stale", False] * 3 + [True], "EXECUTE DEALLOCATE " * 3 + "SELECT"),
    ],
)
def test_saving_works_on_any_sequence_of_pooler_connections(known, ran):
    pool = Pool(*known)
    prepared_statements.execute_prepared(pool, "SELECT %s", ("bigint",), [1])
    assert pool.ran == ran.split()


def test_without_its_sqlstate_a_stale_plan_would_be_an_error(monkeypatch):
    pool = Pool("stale")
    stale = pool.error(prepared_statements.STALE)
    monkeypatch.setattr(pool, "error", lambda code: stale)
    monkeypatch.setattr(prepared_statements, "STALE", "none")
    with pytest.raises(DatabaseError):
        prepared_statements.execute_prepared(pool, "SELECT %s", ("bigint",), [1])
    assert pool.ran == ["EXECUTE"]


@outside
def test_a_stale_plan_costs_one_failed_save_and_not_one_each(maya):
    text = "SELECT * FROM changing WHERE a < %s"

    def execute() -> None:
        with connection.cursor() as cursor:
            prepared_statements.execute_prepared(cursor, text, ("bigint",), [1])

    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE changing (a integer)")
        execute()
        cursor.execute("ALTER TABLE changing ADD b integer")
        assert ran(execute) == ["EXECUTE", "DEALLOCATE"]
        assert ran(execute) == ["EXECUTE"]
        cursor.execute("DROP TABLE changing")
