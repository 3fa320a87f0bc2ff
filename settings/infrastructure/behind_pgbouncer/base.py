"""Django's PostgreSQL, for test databases that are reached through pgbouncer."""

from __future__ import annotations

from django.db.backends.postgresql import base, creation
from django.db.utils import OperationalError
from psycopg2.errors import QueryCanceled

DROPS = 10


class DatabaseCreation(creation.DatabaseCreation):
    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        for drop in range(1, DROPS + 1):
            try:
                self._drop(test_database_name)
            except OperationalError as error:
                if drop == DROPS or not isinstance(error.__cause__, QueryCanceled):
                    raise
            else:
                return

    def _drop(self, name: str) -> None:
        """Once. A checkpoint comes first, and on a slow disk takes longer than
        a statement may; it goes on without us, and the next is a short one.
        """
        # pgbouncer keeps its own connections to the test database long after
        # the tests closed theirs, and without FORCE each would forbid the drop.
        quoted = self.connection.ops.quote_name(name)
        with self._nodb_cursor() as cursor:  # type: ignore[attr-defined]
            cursor.execute(f"DROP DATABASE {quoted} WITH (FORCE)")


class DatabaseWrapper(base.DatabaseWrapper):
    creation_class = DatabaseCreation
