"""A database has all of the migrations that a new one replaces, or none."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def migrate() -> None:
    call_command("migrate", verbosity=0, skip_checks=False)


def test_a_database_with_all_of_them_is_migrated():
    applied = MigrationRecorder(connection).applied_migrations()
    assert ("survey", "0067_answered_in_crowd") in applied
    migrate()


@pytest.mark.parametrize(
    ("app", "name"),
    [
        ("accounts", "0022_coding_threshold"),
        ("survey", "0067_answered_in_crowd"),
        ("reports", "0027_repeating_columns"),
    ],
)
def test_a_database_that_lacks_one_is_refused(app, name):
    MigrationRecorder(connection).record_unapplied(app, name)
    with pytest.raises(CommandError, match=rf"which were replaced: {app}\.{name}\."):
        migrate()
