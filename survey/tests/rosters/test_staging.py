"""Compare rosters in temporary tables, beside other imports and page saves."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError, connection, transaction

from settings.tests.patience import patience
from survey.people.rosters import apply
from survey.people.rosters.staging import TABLES, Staging
from survey.tests.rosters.roster_imports import (
    ALI,
    HEADER,
    MAYA,
    counts,
    many_rows,
    run_import,
)

# Staging has SQL of its own for SQLite.
pytestmark = pytest.mark.sqlite


needs_postgresql = pytest.mark.skipif(
    connection.vendor == "sqlite",
    reason="an in-memory SQLite database has one connection",
)


def run_in_threads(*works):
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
    for thread in threads:
        thread.join(60)
    assert not errors


def test_no_temporary_table_is_left(administration):
    if connection.vendor == "postgresql":
        pytest.skip("on PostgreSQL they end with the transaction, here the test's")
    run_import(administration, HEADER, MAYA)
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_temp_master")
        assert not {name for (name,) in cursor} & set(TABLES)


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_concurrent_imports_create_no_duplicates(administration):
    rows = many_rows(500)
    reports = []

    def work():
        reports.append(run_import(administration, HEADER, *rows))

    run_in_threads(work, work, work)

    assert sorted(counts(report) for report in reports) == [
        (0, 0, 500, 0),
        (0, 0, 500, 0),
        (500, 0, 0, 0),
    ]


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_concurrent_imports_would_fail_without_the_lock(administration, monkeypatch):
    monkeypatch.setattr(
        "survey.people.rosters.staging.PostgreSQLStaging.lock", lambda *_: None
    )
    # If a school had to be created, the second would wait for that instead.
    run_import(administration, HEADER, MAYA)
    both_matched = threading.Barrier(2, timeout=patience(30))
    real = apply.add_people

    def together(*args):
        both_matched.wait()
        return real(*args)

    monkeypatch.setattr(apply, "add_people", together)
    with pytest.raises(AssertionError, match="one_respondent_per_person"):
        run_in_threads(
            *[lambda: run_import(administration, HEADER, *many_rows(50))] * 2
        )


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_page_saves_do_not_wait_while_an_import_compares(administration, maya):
    """An import locks no respondents who do not change."""
    with transaction.atomic():
        run_import(administration, HEADER, *many_rows(50))

        def save():
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '2s'")
                cursor.execute(
                    "SELECT 1 FROM survey_respondent WHERE id = %s FOR SHARE", [maya.pk]
                )

        run_in_threads(save)


@pytest.fixture
def slow_import(monkeypatch):
    """Make one statement of an import exceed the statement timeout."""
    create_tables = Staging.create_tables

    def slowly(self):
        self.execute("SELECT pg_sleep(0.1)")
        create_tables(self)

    monkeypatch.setattr(Staging, "create_tables", slowly)


@needs_postgresql
def test_an_import_is_not_bound_by_the_statement_timeout(administration, slow_import):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 50")
        assert counts(run_import(administration, HEADER, MAYA, ALI)) == (2, 0, 0, 0)


@needs_postgresql
def test_an_import_would_be_cancelled_by_the_statement_timeout(
    administration, slow_import, monkeypatch
):
    """Shows that the test above would fail without lifting the timeout."""
    run = Staging.execute
    monkeypatch.setattr(
        Staging,
        "execute",
        lambda self, sql, params=(): (
            0 if "statement_timeout" in sql else run(self, sql, params)
        ),
    )
    with (
        pytest.raises(OperationalError, match="statement timeout"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SET LOCAL statement_timeout = 50")
        run_import(administration, HEADER, MAYA, ALI)
