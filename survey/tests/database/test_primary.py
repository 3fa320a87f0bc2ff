from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import (
    DEFAULT_DB_ALIAS,
    DataError,
    InterfaceError,
    connection,
    connections,
    transaction,
)
from django.db.backends.utils import CursorWrapper
from django.test.utils import CaptureQueriesContext

from survey.database.primary import PlainCursor, primary, primary_cursor


@pytest.fixture
def postgresql(transactional_db):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has Django's cursor")
    connection.ensure_connection()


def test_each_thread_has_djangos_connection():
    def look():
        return primary(), primary(), connections[DEFAULT_DB_ALIAS]

    first, second, known = look()
    assert first is second is known
    with ThreadPoolExecutor(1) as thread:
        *in_thread, known_there = thread.submit(look).result()
    assert all(each is known_there for each in in_thread)
    assert known_there is not first


def test_a_plain_cursor_reads_what_djangos_reads(postgresql):
    statement = "SELECT now() - interval '1 day', %s, ARRAY[1, 2], NULL"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, ["'; --"])
        [row] = cursor.fetchall()
        with PlainCursor(primary()) as plain:
            plain.execute(statement, ["'; --"])
            [plain_row] = plain.fetchall()
    assert plain_row == row
    assert plain_row[0].isoformat() == row[0].isoformat()


def test_a_plain_cursor_raises_the_errors_of_django(postgresql):
    with primary_cursor() as cursor, pytest.raises(DataError) as raised:
        cursor.execute("SELECT 1 / %s", [0])
    assert isinstance(cursor, PlainCursor)
    assert raised.value.__cause__.pgcode == "22012"
    assert not connection.errors_occurred


def test_a_lost_connection_is_noted_for_the_next_request(postgresql):
    connection.connection.close()
    with pytest.raises(InterfaceError):
        primary_cursor()
    assert connection.errors_occurred
    connection.close()
    with primary_cursor() as cursor:
        cursor.execute("SELECT 1", [])
    with primary_cursor() as cursor:
        cursor.execute("SELECT 2", [])
        assert isinstance(cursor, PlainCursor) and cursor.fetchall() == [(2,)]


def test_whoever_counts_or_undoes_statements_has_djangos_cursor(postgresql):
    def counted(run, *statement):
        return run(*statement)

    assert isinstance(primary_cursor(), PlainCursor)
    with CaptureQueriesContext(connection):
        assert isinstance(primary_cursor(), CursorWrapper)
    with connection.execute_wrapper(counted):
        assert isinstance(primary_cursor(), CursorWrapper)
    with transaction.atomic():
        assert isinstance(primary_cursor(), CursorWrapper)
