"""A check of millions of rows holds up nobody who saves."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.conf import settings
from django.db import connection, transaction

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not settings.SERVERS, reason="SQLite has one writer at a time"),
]

CONSTRAINT = "people_who_declined_can_save_nothing_more"
TABLE = "ALTER TABLE survey_respondent"
# What a page save takes conflicts with these.
STOPS_SAVES = {
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
}


def locks_of(statement: str) -> set[str]:
    """Return the locks on the table that a statement takes, and undo it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
        cursor.execute(
            "SELECT mode FROM pg_locks WHERE pid = pg_backend_pid()"
            " AND relation = 'survey_respondent'::regclass AND granted"
        )
        modes = {mode for (mode,) in cursor.fetchall()}
        transaction.set_rollback(True)
    return modes


def test_people_save_while_rows_of_before_are_checked():
    validate = import_module("survey.migrations.0025_check_declines").VALIDATE
    assert not locks_of(validate) & STOPS_SAVES


def test_a_check_that_is_added_whole_would_stop_them():
    """The twin: it reads all rows under this lock."""
    added = f"{TABLE} ADD CONSTRAINT again CHECK (declined_at IS NULL OR true)"
    assert "AccessExclusiveLock" in locks_of(added)


def test_no_row_is_left_unchecked():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT convalidated FROM pg_constraint WHERE conname = %s", [CONSTRAINT]
        )
        assert cursor.fetchall() == [(True,)]
