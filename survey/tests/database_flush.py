"""Empty the test database although triggers forbid it.

Tests that commit are cleaned up by a flush, which on SQLite is a DELETE for
each table. The triggers that freeze published surveys and keep the audit log
refuse it. On PostgreSQL it is a TRUNCATE, which the audit log refuses too. In
tests a flush therefore removes these triggers and creates them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.core.management.commands import flush

frozen = import_module("survey.migrations.0003_frozen_surveys")
append_only = import_module("accounts.migrations.0003_audit_is_append_only")


@pytest.fixture(scope="session", autouse=True)
def flush_disables_triggers() -> Iterator[None]:
    original = flush.sql_flush
    # Each folder of tests that imports this fixture has its own.
    if getattr(original, "thaws", False):
        yield
        return

    def sql_flush(style: Any, connection: Any, **options: Any) -> list[str]:
        statements = original(style, connection, **options)
        for migration in (frozen, append_only):
            if connection.vendor == "sqlite":
                away, back = migration.sqlite_reverse(), migration.sqlite()
            elif migration is append_only:
                away, back = migration.postgresql_reverse(), migration.postgresql()
            else:
                continue
            statements = [*away, *statements, *back]
        return statements

    sql_flush.thaws = True
    flush.sql_flush = sql_flush
    yield
    flush.sql_flush = original
