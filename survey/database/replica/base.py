"""A database back end for a replica that may fail in the middle of a request.

Inside `health.fall_back_to_primary`, a statement that fails or times out on
the replica is sent to the primary, and the replica is not used for some
seconds. Only reads come here, so repeating one is always safe.
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

# SQLSTATEs of a missing column or table: a migration is not replayed yet.
BEHIND = frozenset(("42703", "42P01"))


class FallbackCursor(CursorWrapper):
    db: DatabaseWrapper

    def _execute(self, sql: str, params: Any, *rest: Any) -> Any:
        try:
            with self.db.wrap_database_errors, self.db.deadline():
                return super()._execute(sql, params, *rest)  # type: ignore[misc]
        except (OperationalError, InterfaceError, ProgrammingError) as error:
            # Any other programming error is in the statement, so the primary would
            # raise it too.
            code = getattr(error.__cause__, "pgcode", None)
            is_statement = isinstance(error, ProgrammingError) and code not in BEHIND
            if health.fallback_timeout() is None or is_statement:
                raise
            self.db.give_up()
        self.cursor = connections[DEFAULT_DB_ALIAS].cursor()
        return self.cursor.execute(sql, params)


class FallbackDebugCursor(base.CursorDebugWrapper, FallbackCursor):
    pass


class DatabaseWrapper(base.DatabaseWrapper):
    def make_cursor(self, cursor: Any) -> FallbackCursor:
        return FallbackCursor(cursor, self)

    def make_debug_cursor(self, cursor: Any) -> FallbackDebugCursor:
        return FallbackDebugCursor(cursor, self)

    def _cursor(self, name: str | None = None) -> Any:
        if health.fallback_timeout() is None:
            return super()._cursor(name)  # type: ignore[misc]
        # Another thread may have marked the replica down since the router chose.
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
        seconds = health.reply_timeout()
        if seconds is None or self.connection is None:
            return nullcontext()
        return health.Deadline(self.connection.fileno(), seconds)

    def give_up(self) -> None:
        health.mark_down()
        self.close()
