"""Django's PostgreSQL, for test databases that are reached through pgbouncer."""

from __future__ import annotations

from django.db.backends.postgresql import base, creation


class DatabaseCreation(creation.DatabaseCreation):
    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        # pgbouncer keeps its own connections to the test database long after
        # the tests closed theirs, and without FORCE each would forbid the drop.
        name = self.connection.ops.quote_name(test_database_name)
        with self._nodb_cursor() as cursor:  # type: ignore[attr-defined]
            cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


class DatabaseWrapper(base.DatabaseWrapper):
    creation_class = DatabaseCreation
