"""A roster's rows in temporary tables, where they meet the people already there.

PostgreSQL and SQLite differ in how rows get in, where ids come from, and how
long a transaction may last; the rest is the same SQL, in `rosters.apply`.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

TABLES = (
    "roster_row",
    "roster_place",
    "roster_duplicate",
    "roster_match",
    "roster_absent",
    "roster_new",
)


class Staging(ABC):
    """One import's temporary tables; what both databases share."""

    # The comparison that also tells NULL from a value.
    differs: ClassVar[str]
    types: ClassVar[dict[str, str]]

    def __init__(self, cursor: CursorWrapper) -> None:
        self.cursor = cursor

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        """Run one statement; the number of rows it changed."""
        self.cursor.execute(sql, params)
        return self.cursor.rowcount

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self.cursor.execute(sql, params)
        return self.cursor.fetchall()

    def many(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        self.cursor.executemany(sql, rows)

    def in_batches(
        self, sql: str, params: Sequence[Any] = (), size: int = 5000
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Rows of a query that ends in `row > %s ORDER BY row LIMIT %s`.

        Each batch is a query of its own, so that other statements can run
        between them and that neither side holds the whole result.
        """
        after = -1
        while batch := self.all(sql, (*params, after, size)):
            yield batch
            after = batch[-1][0]

    def create_tables(self) -> None:
        self.drop_tables()
        for sql in _CREATE:
            self.run(sql.format(**self.types))

    def drop_tables(self) -> None:
        for table in TABLES:
            self.run(f"DROP TABLE IF EXISTS {table}")

    @abstractmethod
    def copy(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Put rows into one of the tables, in the order of its columns."""

    @abstractmethod
    def analyze(self, table: str) -> None:
        """Tell the planner how large a temporary table became."""

    @abstractmethod
    def take_ids(self, count: int) -> list[int]:
        """Ids for new respondents; inside the transaction that inserts them."""

    @abstractmethod
    def lock(self, administration_id: int) -> None:
        """Let one import into an administration wait for the other."""


_CREATE = (
    """
    CREATE TEMPORARY TABLE roster_row (
        row integer PRIMARY KEY, place integer, district text, external_id text,
        grade text, language text, given_name text, family_name text, email text,
        birth_date {date}, birth_date_day_first {date}, attributes {json}
    ) {on_commit}
    """,
    """
    CREATE TEMPORARY TABLE roster_place (
        place integer PRIMARY KEY, district_id bigint, school_id bigint
    ) {on_commit}
    """,
    """
    CREATE TEMPORARY TABLE roster_new (
        row integer PRIMARY KEY, respondent_id bigint, issue smallint,
        code_digest {bytes}
    ) {on_commit}
    """,
)


class PostgreSQLStaging(Staging):
    differs = "IS DISTINCT FROM"
    types: ClassVar = {
        "date": "date",
        "json": "jsonb",
        "bytes": "bytea",
        "on_commit": "ON COMMIT DROP",
    }
    # Any number that no other advisory lock of ours has.
    LOCK = 7_105_001

    def copy(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        # csv's writer is the fastest encoder that Python has; an empty cell
        # is NULL only where the column may be.
        file = io.StringIO()
        csv.writer(file).writerows(
            [f"\\x{cell.hex()}" if isinstance(cell, bytes) else cell for cell in row]
            if table == "roster_new"
            else row
            for row in rows
        )
        file.seek(0)
        self.cursor.copy_expert(_COPY[table], file)

    def analyze(self, table: str) -> None:
        # Nothing else does: autovacuum cannot see temporary tables, and the
        # planner would join 100,000 rows in nested loops.
        self.run(f"ANALYZE {table}")

    def take_ids(self, count: int) -> list[int]:
        taken = self.all(
            "SELECT nextval(pg_get_serial_sequence('survey_respondent', 'id'))"
            " FROM generate_series(1, %s)",
            [count],
        )
        return [one for (one,) in taken]

    def lock(self, administration_id: int) -> None:
        # Not the administration's row: an administrator who moves its closing
        # must not wait for an import.
        self.run("SELECT pg_advisory_xact_lock(%s, %s)", [self.LOCK, administration_id])


_COPY = {
    "roster_row": """
        COPY roster_row FROM STDIN (FORMAT csv, FORCE_NOT_NULL (
            district, external_id, grade, language, given_name, family_name, email))
        """,
    "roster_place": "COPY roster_place FROM STDIN (FORMAT csv)",
    "roster_new": "COPY roster_new FROM STDIN (FORMAT csv)",
}


class SQLiteStaging(Staging):
    differs = "IS NOT"
    types: ClassVar = {"date": "text", "json": "text", "bytes": "blob", "on_commit": ""}

    def copy(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        sql = _INSERT[table]
        if table == "roster_row":
            rows = (
                [*row[:9], row[9] or None, row[10] or None, row[11]] for row in rows
            )
        self.cursor.executemany(sql, list(rows))

    def analyze(self, table: str) -> None:
        """Its planner goes by the indexes."""

    def take_ids(self, count: int) -> list[int]:
        # The transaction is immediate, so nobody else takes the same.
        [(last,)] = self.all(
            "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = %s",
            ["survey_respondent"],
        )
        [(used,)] = self.all("SELECT coalesce(max(respondent_id), 0) FROM roster_new")
        first = max(last, used) + 1
        return list(range(first, first + count))

    def lock(self, administration_id: int) -> None:
        """The transaction is immediate: it holds the database's one write lock."""


_INSERT = {
    "roster_row": (
        "INSERT INTO roster_row VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    ),
    "roster_place": "INSERT INTO roster_place VALUES (%s, %s, %s)",
    "roster_new": "INSERT INTO roster_new VALUES (%s, %s, %s, %s)",
}


@contextmanager
def open_staging() -> Iterator[Staging]:
    """The temporary tables of one import.

    On PostgreSQL all of it is one transaction, as pgbouncer demands, and
    nobody waits for it. On SQLite a transaction would keep every page save
    waiting while the file is read; there it begins with the first change.
    """
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            staging: Staging = PostgreSQLStaging(cursor)
            # The role's timeouts are those of a page turn. A roster of two
            # million takes minutes, and waits for another in front of it.
            staging.run("SET LOCAL statement_timeout = 0")
            staging.run("SET LOCAL lock_timeout = 0")
            staging.create_tables()
            yield staging
        return
    with connection.cursor() as cursor:
        staging = SQLiteStaging(cursor)
        staging.create_tables()
        try:
            yield staging
        finally:
            staging.drop_tables()


@contextmanager
def filling(staging: Staging) -> Iterator[None]:
    """Around the filling of `roster_row`.

    In SQLite a savepoint makes one deferred transaction of the many inserts:
    they touch the temporary database only, and lock nobody out.
    """
    if connection.vendor == "sqlite":
        staging.run("SAVEPOINT roster_rows")
    try:
        yield
    except BaseException:
        if connection.vendor == "sqlite":
            staging.run("ROLLBACK TO roster_rows")
            staging.run("RELEASE roster_rows")
        raise
    if connection.vendor == "sqlite":
        staging.run("RELEASE roster_rows")
    staging.analyze("roster_row")
