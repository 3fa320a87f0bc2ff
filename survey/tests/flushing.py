"""Emptying the test database where the triggers would refuse it.

Tests that commit are cleaned up by a flush, which on SQLite is a DELETE for
each table: the triggers that freeze published surveys refuse it. (PostgreSQL
truncates, which fires no row trigger.) A flush in the tests therefore takes
the triggers away and puts them back.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.core.management.commands import flush

frozen = import_module("survey.migrations.0003_frozen_surveys")


@pytest.fixture(scope="session", autouse=True)
def flush_thaws() -> Iterator[None]:
    original = flush.sql_flush

    def sql_flush(style: Any, connection: Any, **options: Any) -> list[str]:
        statements = original(style, connection, **options)
        if connection.vendor != "sqlite":
            return statements
        return [*frozen.sqlite_reverse(), *statements, *frozen.sqlite()]

    flush.sql_flush = sql_flush
    yield
    flush.sql_flush = original
