"""Django's PostgreSQL for a replica that may fail in the middle of a request.

While `health.patience` says that somebody is waiting, a statement that the
replica fails or does not answer is sent to the primary instead, and the
replica is left alone for some seconds. Only reads come here, so sending one
again is always safe.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connections,
)
from django.db.backends.postgresql import base
from django.db.backends.utils import CursorWrapper

from survey.database.replica import health

# No such column, no such table: it has yet to replay a migration.
BEHIND = frozenset(("42703", "42P01"))


class Replaceable(CursorWrapper):
    db: DatabaseWrapper

    def _execute(self, sql: str, params: Any, *rest: Any) -> Any:
        try:
            with self.db.wrap_database_errors, self.db.deadline():
                return super()._execute(sql, params, *rest)  # type: ignore[misc]
        except (OperationalError, InterfaceError, ProgrammingError) as error:
            if health.patience() is None or not _is_its_own(error):
                raise
            self.db.give_up()
        self.cursor = connections[DEFAULT_DB_ALIAS].cursor()
        return self.cursor.execute(sql, params)


def _is_its_own(error: Exception) -> bool:
    """Not the statement's fault, which the primary would find as well."""
    if not isinstance(error, ProgrammingError):
        return True
    return getattr(error.__cause__, "pgcode", None) in BEHIND


class ReplaceableDebug(base.CursorDebugWrapper, Replaceable):
    pass


class DatabaseWrapper(base.DatabaseWrapper):
    def make_cursor(self, cursor: Any) -> Replaceable:
        return Replaceable(cursor, self)

    def make_debug_cursor(self, cursor: Any) -> ReplaceableDebug:
        return ReplaceableDebug(cursor, self)

    def _cursor(self, name: str | None = None) -> Any:
        if health.patience() is None:
            return super()._cursor(name)  # type: ignore[misc]
        # The router chose before another thread of this process gave up.
        if health.is_up():
            try:
                return super()._cursor(name)  # type: ignore[misc]
            except (OperationalError, InterfaceError):
                self.give_up()
        return connections[DEFAULT_DB_ALIAS].cursor()

    def init_connection_state(self) -> None:
        with self.deadline():
            super().init_connection_state()

    def deadline(self) -> AbstractContextManager[None]:
        seconds = health.limit()
        if seconds is None or self.connection is None:
            return nullcontext()
        return health.Deadline(self.connection.fileno(), seconds)

    def give_up(self) -> None:
        health.mark_down()
        self.close()
