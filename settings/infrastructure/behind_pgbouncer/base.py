"""Extend Django's PostgreSQL backend for test databases behind pgbouncer."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base, creation, operations
from django.db.backends.utils import CursorWrapper


class DatabaseCreation(creation.DatabaseCreation):
    @property
    def dump(self) -> Path:
        """The file with a migrated database, for these migrations."""
        files = sorted(settings.BASE_DIR.glob("*/migrations/*.py"))
        state = str([(file.name, file.stat().st_mtime) for file in files]).encode()
        digest = hashlib.sha256(state).hexdigest()[:16]
        return Path(settings.SHARED_TEST_SERVERS, f"migrated-{digest}.sql")

    def create_test_db(self, *args: Any, **kwargs: Any) -> str:
        """Migrate once in each run of the tests; other processes load the result."""
        migrated = self.dump
        with migrated.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not migrated.exists():
                name = super().create_test_db(*args, **kwargs)
                unfinished = migrated.with_suffix(".unfinished")
                self._run("pg_dump", name, f"--file={unfinished}", "--no-comments")
                unfinished.rename(migrated)
                return name
        name = str(self._get_test_db_name())  # type: ignore[attr-defined]
        self._create_test_db(0, True)  # type: ignore[attr-defined]
        self._run(
            "psql", name, "--quiet", "--set=ON_ERROR_STOP=1", f"--file={migrated}"
        )
        self.connection.close()
        settings.DATABASES[self.connection.alias]["NAME"] = name
        self.connection.settings_dict["NAME"] = name
        return name

    def _run(self, program: str, database: str, *options: str) -> None:
        known = self.connection.settings_dict
        subprocess.run(  # noqa: S603
            [
                *(program, f"--host={known['HOST']}", "--port=5432"),
                # The owner may not repeat grants on functions of extensions.
                *("--username=postgres", f"--dbname={database}", *options),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        # pgbouncer keeps connections to the test database open after the tests
        # have closed theirs, and each of them would prevent a plain DROP. WITH
        # (FORCE) would end them too, but fails while autovacuum is working in
        # the database, which a plain DROP stops.
        quoted = self.connection.ops.quote_name(test_database_name)
        with self._nodb_cursor() as cursor:  # type: ignore[attr-defined]
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = %s AND usename = current_user",
                [test_database_name],
            )
            cursor.execute(f"DROP DATABASE {quoted}")


class DatabaseOperations(operations.DatabaseOperations):
    def execute_sql_flush(self, sql_list: Iterable[str]) -> None:
        """Flush without time limits, which a busy machine would exceed."""
        with transaction.atomic(using=self.connection.alias):
            with self.connection.cursor() as cursor:
                cursor.execute(
                    "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'"
                )
            super().execute_sql_flush(sql_list)


class DatabaseWrapper(base.DatabaseWrapper):
    creation_class = DatabaseCreation
    ops_class = DatabaseOperations

    @contextmanager
    def _nodb_cursor(self) -> Iterator[CursorWrapper]:
        """Create and drop databases over a direct connection, without time limits.

        Both wait for a checkpoint, which can exceed the statement timeout.
        """
        connection = base.DatabaseWrapper(
            {
                **self.settings_dict,
                "NAME": "postgres",
                "PORT": 5432,
                "OPTIONS": {"options": "-c statement_timeout=0 -c lock_timeout=0"},
            },
            alias=NO_DB_ALIAS,
        )
        try:
            with connection.cursor() as cursor:
                yield cursor
        finally:
            connection.close()
