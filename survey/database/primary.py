"""Reach the primary with fewer steps, for page saves.

Django's `connection` is a proxy, which looks for a running event loop before each
attribute, and its cursor has three layers around that of psycopg2.
"""

from __future__ import annotations

import threading
from asyncio import _get_running_loop
from collections.abc import Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper


class _OfThread(threading.local):
    connection: BaseDatabaseWrapper | None = None


_of_thread = _OfThread()


def primary() -> BaseDatabaseWrapper:
    """Return what `django.db.connection` stands for here.

    Where an event loop runs, each task has its own.
    """
    if _get_running_loop() is not None:
        return connections[DEFAULT_DB_ALIAS]
    if _of_thread.connection is None:
        _of_thread.connection = connections[DEFAULT_DB_ALIAS]
    return _of_thread.connection


class PlainCursor:
    """A cursor of psycopg2 that raises Django's errors."""

    __slots__ = ("_cursor", "db", "fetchall")

    def __init__(self, db: Any) -> None:
        self.db = db
        # Notes for the next request that the connection may be lost.
        with db.wrap_database_errors:
            self._cursor = db.connection.cursor()
        self._cursor.tzinfo_factory = db.tzinfo_factory
        self.fetchall = self._cursor.fetchall

    def execute(self, text: str, parameters: Sequence[object] | None = None) -> None:
        with self.db.wrap_database_errors:
            self._cursor.execute(text, parameters)

    def __enter__(self) -> PlainCursor:
        return self

    def __exit__(self, *error: object) -> None:
        self._cursor.close()


def primary_cursor() -> CursorWrapper | PlainCursor:
    """Return a cursor on the primary; Django's, where somebody counts its statements.

    And inside a transaction, which it keeps from being continued after an error, and
    where it examines the connection first.
    """
    db = primary()
    is_plain = (
        db.vendor == "postgresql"
        and db.connection is not None
        and not db.settings_dict["CONN_HEALTH_CHECKS"]
        and not (db.in_atomic_block or db.execute_wrappers or db.force_debug_cursor)
    )
    return PlainCursor(db) if is_plain else db.cursor()
