"""A check of millions of rows holds up nobody who saves."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations import AddConstraint
from django.db.migrations.operations.base import Operation

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not settings.SERVERS, reason="SQLite has one writer at a time"),
]

CONSTRAINT = "people_who_declined_can_save_nothing_more"
TABLE = "ALTER TABLE survey_respondent"
ADDED = ("survey", "0022_declines")
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


def is_validated() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT convalidated FROM pg_constraint WHERE conname = %s", [CONSTRAINT]
        )
        [(validated,)] = cursor.fetchall()
    return bool(validated)


def test_no_row_is_left_unchecked():
    assert is_validated()


def add_again(operation: Operation) -> None:
    """Drop the constraint, and add it as an operation of the migration does."""
    state = MigrationExecutor(connection).loader.project_state(ADDED)
    with connection.schema_editor(atomic=False) as editor:
        editor.execute(f"{TABLE} DROP CONSTRAINT {CONSTRAINT}")
        operation.database_forwards("survey", editor, state, state)


def added_constraint() -> AddConstraint:
    operations = import_module(f"survey.migrations.{ADDED[1]}").Migration.operations
    [operation] = [each for each in operations if isinstance(each, AddConstraint)]
    return operation


def test_the_constraint_is_added_without_reading_a_row():
    validate = import_module("survey.migrations.0025_check_declines").VALIDATE
    with transaction.atomic():
        add_again(added_constraint())
        assert not is_validated()
        with connection.cursor() as cursor:
            cursor.execute(validate)
        assert is_validated()
        transaction.set_rollback(True)


def test_djangos_operation_would_read_all_rows():
    """The twin."""
    with transaction.atomic():
        add_again(AddConstraint("Respondent", added_constraint().constraint))
        assert is_validated()
        transaction.set_rollback(True)
