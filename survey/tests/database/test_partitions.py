"""Which roles may create and drop an administration's partition, and what waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from settings.tests.patience import patience
from survey.fieldwork.administrations import DatabaseBusy, open_administration
from survey.models import Administration, Response, Role
from survey.taking.storage import Outcome
from survey.tests.taking.test_storage_races import elsewhere, save

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="SQLite has no partitions"
    ),
]
# The statement without the function.
BY_HAND = """
CREATE TABLE survey_response_{0} (LIKE survey_response INCLUDING ALL);
ALTER TABLE survey_response ATTACH PARTITION survey_response_{0} FOR VALUES IN ({0});
"""
ROW = """
INSERT INTO survey_administration
    (name, published_id, role, opens_at, closes_at, coordinators_see_finished)
VALUES ('by-console', %s, 'student', now(), now() + interval '1 day', false)
RETURNING id
"""


@contextmanager
def session(user: str) -> Iterator[Any]:
    """Open a cursor as one of the stack's roles, in the test database."""
    place = {"host": settings.SERVERS, "port": 5432}
    name = str(connection.settings_dict["NAME"])
    with closing(psycopg2.connect(dbname=name, user=user, **place)) as connected:
        connected.autocommit = True
        yield connected.cursor()


@pytest.fixture
def granted(transactional_db: None) -> None:
    """Grant what the stack grants, from its own file."""
    grants = Path(settings.SERVERS) / "etc" / "primary" / "grants.sql"
    with session("groundswell") as owner:
        owner.execute(grants.read_text())


def partitions() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits"
            " WHERE inhparent = 'survey_response'::regclass"
        )
        return {name for (name,) in cursor.fetchall()}


def refused(cursor: Any, statement: str, *values: object) -> str:
    with pytest.raises(psycopg2.Error) as caught:
        cursor.execute(statement, values)
    return type(caught.value).__name__


ADD = "SELECT survey_add_partition(%s)"


def test_the_console_role_can_open_an_administration(publish, granted, maya):
    before = partitions()
    with session("console") as console:
        console.execute(ROW, [publish(name="other").pk])
        (number,) = console.fetchone()
        console.execute(ADD, [number])
    assert partitions() - before == {f"survey_response_{number}"}
    # As the owner would create it: with its key and check only.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname ~ 'pkey|a_value_exactly' FROM pg_constraint"
            " WHERE conrelid = %s::regclass",
            [f"survey_response_{number}"],
        )
        assert cursor.fetchall() == [(True,), (True,)]
        cursor.execute(
            "SELECT tableowner FROM pg_tables WHERE tablename = %s",
            [f"survey_response_{number}"],
        )
        assert cursor.fetchone() == ("groundswell",)


def test_without_the_function_the_console_role_is_refused(publish, granted):
    """The role may insert the row, and change no table."""
    with session("console") as console:
        console.execute(ROW, [publish().pk])
        (number,) = console.fetchone()
        assert refused(console, BY_HAND.format(number)) == "InsufficientPrivilege"
        with session("groundswell") as owner:
            owner.execute(
                "REVOKE EXECUTE ON FUNCTION survey_add_partition FROM console"
            )
        assert refused(console, ADD, number) == "InsufficientPrivilege"
    assert f"survey_response_{number}" not in partitions()


@pytest.mark.parametrize("role", ["taking", "reports"])
def test_the_respondents_and_the_reports_role_may_not_call_the_function(
    administration, granted, role
):
    with session(role) as cursor:
        assert refused(cursor, ADD, administration.pk) in (
            "InsufficientPrivilege",
            "ReadOnlySqlTransaction",
        )


@pytest.mark.parametrize("number", [0, -1, 2**62, None])
def test_an_unknown_administration_gets_no_partition(administration, granted, number):
    before = partitions()
    with session("console") as console:
        assert refused(console, ADD, number) == "ForeignKeyViolation"
    assert partitions() == before


def test_each_administration_has_exactly_one_partition(administration, granted):
    before = partitions()
    with session("console") as console:
        assert refused(console, ADD, administration.pk) == "DuplicateTable"
    assert partitions() == before


def test_a_temporary_table_of_the_caller_does_not_shadow_the_real_one(
    administration, granted
):
    before = partitions()
    with session("console") as console:
        console.execute("CREATE TEMP TABLE survey_administration (id bigint)")
        console.execute("INSERT INTO survey_administration VALUES (777)")
        console.execute("CREATE TEMP TABLE survey_response (id bigint)")
        console.execute("SET search_path = pg_temp, public")
        assert refused(console, "SELECT public.survey_add_partition(777)") == (
            "ForeignKeyViolation"
        )
    assert partitions() == before


def opening(published: Any, name: str) -> Administration:
    now = timezone.now()
    return open_administration(
        name=name,
        published=published,
        role=Role.STUDENT,
        opens_at=now,
        closes_at=now + timedelta(days=1),
    )


def test_a_save_does_not_wait_for_an_opening(maya, administration):
    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        opening(administration.published, "second")
        saved = threads.submit(elsewhere(lambda: save(maya, "meanwhile", 7)))
        assert saved.result(timeout=patience(1)).outcome is Outcome.SAVED


def test_creating_a_partition_directly_would_block_saves(maya, administration):
    """The function avoids CREATE … PARTITION OF."""
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "CREATE TABLE at_once PARTITION OF survey_response FOR VALUES IN (0)"
            )
            saved = threads.submit(elsewhere(lambda: save(maya, "meanwhile", 7)))
            time.sleep(0.4)
            assert not saved.done()
            transaction.set_rollback(True)
        assert saved.result(timeout=patience(2)).outcome is Outcome.SAVED


def test_an_opening_does_not_wait_for_a_save(maya, administration):
    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        save(maya, "in flight", 7)
        opened = threads.submit(
            elsewhere(lambda: opening(administration.published, "second"))
        )
        assert opened.result(timeout=patience(1)).name == "second"


def test_an_opening_that_times_out_leaves_nothing_and_says_why(administration):
    def try_it() -> tuple[float, str]:
        began = time.monotonic()
        with pytest.raises(DatabaseBusy) as busy:
            opening(administration.published, "second")
        return time.monotonic() - began, busy.value.messages[0]

    before = partitions()
    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        with connection.cursor() as cursor:
            # The lock that building an index holds.
            cursor.execute("LOCK TABLE survey_response IN SHARE MODE")
        waited, message = threads.submit(elsewhere(try_it)).result(timeout=patience(5))
    assert 0.9 < waited < patience(2)
    assert "Try again in a minute" in message
    assert partitions() == before
    assert not Administration.objects.filter(name="second").exists()


DROP = "SELECT survey_drop_partition(%s)"
DELETE = "DELETE FROM survey_administration WHERE id = %s"


def test_the_console_role_drops_the_partition_of_a_removed_administration(
    administration, granted
):
    second = opening(administration.published, "second")
    before = partitions()
    with session("console") as console:
        console.execute("BEGIN")
        console.execute(DELETE, [second.pk])
        console.execute(DROP, [second.pk])
        console.execute("COMMIT")
    assert before - partitions() == {f"survey_response_{second.pk}"}


def test_the_console_role_drops_no_other_table(administration, granted, maya):
    with session("console") as console:
        statement = f"DROP TABLE survey_response_{administration.pk}"
        assert refused(console, statement) == "InsufficientPrivilege"
        # One that is still there, and those that never were.
        assert refused(console, DROP, administration.pk) == "RestrictViolation"
        for number in (0, -1, 2**62, None):
            assert refused(console, DROP, number) == "UndefinedTable"
    assert f"survey_response_{administration.pk}" in partitions()
    assert save(maya, "later", 7).outcome is Outcome.SAVED


@pytest.mark.parametrize("role", ["taking", "worker", "reports"])
def test_no_other_role_drops_a_partition(administration, granted, role):
    with session(role) as cursor:
        assert refused(cursor, DROP, administration.pk) == "InsufficientPrivilege"


def test_a_partition_with_responses_is_not_dropped(administration, granted, maya):
    """Whatever the caller has deleted."""
    save(maya, "kept", 7)
    with session("console") as console:
        console.execute("BEGIN")
        console.execute(DELETE, [administration.pk])
        console.execute("SAVEPOINT people")
        # maya is still on the roster.
        assert refused(console, DROP, administration.pk) == "RestrictViolation"
        console.execute("ROLLBACK TO people")
        console.execute("DELETE FROM survey_respondent")
        assert refused(console, DROP, administration.pk) == "RestrictViolation"
        console.execute("ROLLBACK")
    assert Response.objects.count() == 3


def test_an_older_snapshot_does_not_hide_responses(administration, granted, maya):
    """In READ COMMITTED, each look in the function sees what was committed."""
    with session("console") as console:
        console.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        console.execute("SELECT 1 FROM survey_administration")
        save(maya, "kept", 7)
        assert refused(console, DROP, administration.pk) == "InvalidTransactionState"
        console.execute("ROLLBACK")
    assert Response.objects.count() == 3


def test_temporary_tables_of_the_caller_do_not_drop_a_partition(
    administration, granted
):
    with session("console") as console:
        console.execute("CREATE TEMP TABLE survey_administration (id bigint)")
        console.execute("CREATE TEMP TABLE pg_inherits (inhrelid oid, inhparent oid)")
        console.execute("SET search_path = pg_temp, public")
        assert refused(console, "SELECT public.survey_drop_partition(%s)",
                       administration.pk) == "RestrictViolation"  # fmt: skip
    assert f"survey_response_{administration.pk}" in partitions()
