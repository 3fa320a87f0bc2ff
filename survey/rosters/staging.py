"""A roster's rows in temporary tables, where they meet the people already there.

PostgreSQL and SQLite differ in how rows get in, where ids come from, and how
long a transaction may last; the rest is the same SQL, in `rosters.diff`.

What a roster changes is written in batches, each a transaction of its own, so
that nobody's page save waits. The temporary tables outlive those: behind a
transaction pool, which gives each transaction another connection, they live
in one long transaction on a connection beside Django's own. It reads only.
"""

from __future__ import annotations

import csv
import io
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.db.backends.utils import CursorWrapper
from django.db.transaction import atomic

from survey.database import advisory_locks

TABLES = (
    "roster_row",
    "roster_place",
    "roster_district",
    "roster_duplicate",
    "roster_rejection",
    "roster_spared",
    "roster_match",
    "roster_zero",
    "roster_gone",
    "roster_batch",
    "roster_new",
)
T = TypeVar("T")
Packed = Any


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

    def drop_rows(self, condition: str) -> None:
        """Take rejected rows out; their people stay as they are."""
        self.run(
            f"""
            INSERT INTO roster_spared
            SELECT district, external_id FROM roster_row WHERE {condition}
            """  # noqa: S608
        )
        self.run(f"DELETE FROM roster_row WHERE {condition}")  # noqa: S608

    def create_tables(self) -> None:
        self.drop_tables()
        for name, columns in _TABLES.items():
            self.create(name, columns)

    def create(self, name: str, columns: str) -> None:
        columns = columns.format(**self.types)
        self.run(f"CREATE TEMPORARY TABLE {name} ({columns})")

    def drop_tables(self) -> None:
        for table in TABLES:
            self.run(f"DROP TABLE IF EXISTS {table}")

    @abstractmethod
    def copy(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Put rows into one of the tables, in the order of its columns."""

    @abstractmethod
    def packed(self, sql: str, params: Sequence[Any]) -> Packed:
        """The rows of a query, for the `roster_batch` of who writes."""

    @abstractmethod
    def unpack(self, packed: Packed) -> None:
        """Put them there."""

    @abstractmethod
    def analyze(self, table: str) -> None:
        """Tell the planner how large a temporary table became."""

    @abstractmethod
    def take_ids(self, count: int) -> list[int]:
        """Ids for new respondents; inside the transaction that inserts them."""

    @abstractmethod
    def lock(self, administration_id: int) -> None:
        """Let one import into an administration wait for the other."""


_PERSON = """
    external_id text, grade text, classroom text, language text, given_name text,
    family_name text, email text, birth_date {date}
    """
_TABLES = {
    "roster_row": f"""
        row integer PRIMARY KEY, place integer, district text, {_PERSON},
        birth_date_day_first {{date}}, attributes {{json}}
        """,
    "roster_place": """
        place integer PRIMARY KEY, district_id bigint, school_id bigint
        """,
    "roster_district": "district text PRIMARY KEY, district_id bigint",
    "roster_spared": "district text, external_id text",
    "roster_rejection": """
        sequence {sequence}, row integer, named text, reason text, cell text
        """,
}
# Of a batch, on the side that writes.
BATCH_TABLES = {
    "roster_batch": f"""
        row integer PRIMARY KEY, respondent_id bigint, district_id bigint,
        school_id bigint, {_PERSON}, attributes {{json}}
        """,
    "roster_new": """
        row integer PRIMARY KEY, respondent_id bigint, issue smallint,
        code_digest {bytes}
        """,
}


class PostgreSQLStaging(Staging):
    differs = "IS DISTINCT FROM"
    types: ClassVar = {
        "date": "date",
        "json": "jsonb",
        "bytes": "bytea",
        "sequence": "bigserial",
    }

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

    def packed(self, sql: str, params: Sequence[Any]) -> Packed:
        # As bytes, which Python never looks at: 2 us for a row instead of 20.
        rows = io.BytesIO()
        query = self.cursor.mogrify(sql, params).decode()
        self.cursor.copy_expert(f"COPY ({query}) TO STDOUT", rows)
        return rows.getvalue()

    def unpack(self, packed: Packed) -> None:
        assert isinstance(packed, bytes)  # noqa: S101
        self.cursor.copy_expert("COPY roster_batch FROM STDIN", io.BytesIO(packed))

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
        # must not wait for an import. It ends with the transaction, also when
        # the worker is killed.
        self.run(
            "SELECT pg_advisory_xact_lock(%s, %s)",
            [advisory_locks.ROSTER, administration_id],
        )


_COPY = {
    "roster_row": """
        COPY roster_row FROM STDIN (FORMAT csv, FORCE_NOT_NULL (
            district, external_id, grade, classroom, language, given_name,
            family_name, email))
        """,
    "roster_place": "COPY roster_place FROM STDIN (FORMAT csv)",
    "roster_district": "COPY roster_district FROM STDIN (FORMAT csv)",
    "roster_spared": "COPY roster_spared FROM STDIN (FORMAT csv)",
    "roster_rejection": """
        COPY roster_rejection (row, named, reason, cell) FROM STDIN (FORMAT csv,
            FORCE_NOT_NULL (named, reason, cell))
        """,
    "roster_new": "COPY roster_new FROM STDIN (FORMAT csv)",
}


class SQLiteStaging(Staging):
    differs = "IS NOT"
    types: ClassVar = {
        "date": "text",
        "json": "text",
        "bytes": "blob",
        "sequence": "integer PRIMARY KEY",
    }

    def copy(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        if table == "roster_row":
            rows = (
                [*row[:10], row[10] or None, row[11] or None, row[12]] for row in rows
            )
        self.cursor.executemany(_INSERT[table], list(rows))

    def packed(self, sql: str, params: Sequence[Any]) -> Packed:
        # The same connection writes: it finds them itself.
        return sql, params

    def unpack(self, packed: Packed) -> None:
        sql, params = packed
        self.run(f"INSERT INTO roster_batch {sql}", params)  # noqa: S608

    def analyze(self, table: str) -> None:
        """Its planner goes by the indexes."""

    def take_ids(self, count: int) -> list[int]:
        # The transaction is immediate, so nobody else takes the same.
        [(last,)] = self.all(
            "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = %s",
            ["survey_respondent"],
        )
        return list(range(last + 1, last + 1 + count))

    def lock(self, administration_id: int) -> None:
        """There is one worker, who does one roster after the other."""


_INSERT = {
    "roster_row": (
        "INSERT INTO roster_row VALUES"
        " (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    ),
    "roster_place": "INSERT INTO roster_place VALUES (%s, %s, %s)",
    "roster_district": "INSERT INTO roster_district VALUES (%s, %s)",
    "roster_spared": "INSERT INTO roster_spared VALUES (%s, %s)",
    "roster_rejection": (
        "INSERT INTO roster_rejection (row, named, reason, cell)"
        " VALUES (%s, %s, %s, %s)"
    ),
    "roster_new": "INSERT INTO roster_new VALUES (%s, %s, %s, %s)",
}


@contextmanager
def open_staging() -> Iterator[Staging]:
    """The temporary tables of one import; they and its lock end with it.

    On SQLite a transaction would keep every page save waiting while the file
    is read; there is none but for each batch that is written.
    """
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor, _tables(SQLiteStaging(cursor)) as staging:
            yield staging
    elif connection.in_atomic_block:
        # What its caller has not committed yet, another connection cannot see.
        with connection.cursor() as cursor, _tables(_without_haste(cursor)) as staging:
            yield staging
    else:
        with _beside() as cursor:
            staging = _without_haste(cursor)
            staging.create_tables()
            yield staging


def _without_haste(cursor: CursorWrapper) -> Staging:
    # The role's timeouts are those of a page turn. A roster of two million
    # takes minutes, and waits for another in front of it.
    staging = PostgreSQLStaging(cursor)
    for name in (
        "statement_timeout",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
    ):
        staging.run(f"SET LOCAL {name} = 0")
    return staging


@contextmanager
def _tables(staging: Staging) -> Iterator[Staging]:
    staging.create_tables()
    try:
        yield staging
    except BaseException:
        # A failed transaction takes them along, and could not drop them.
        if connection.vendor == "sqlite":
            staging.drop_tables()
        raise
    staging.drop_tables()


@contextmanager
def _beside() -> Iterator[CursorWrapper]:
    own = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        with own.cursor() as cursor:
            cursor.execute("BEGIN")
            yield cursor
            cursor.execute("ROLLBACK")
    finally:
        own.close()


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


# Writing --------------------------------------------------------------------

# A page save waits for one batch at most, and its own lock_timeout is a second.
# A batch that meets a lock itself lets go of what it has and tries again.
BATCH_LOCK_TIMEOUT = "300ms"
MOST_TRIES = 40
_LATER = frozenset(("55P03", "40P01", "57014", "40001"))


def in_brief(write: Callable[[Staging], T]) -> T:
    """Run `write` in a short transaction of its own, again where it must wait."""
    for tries in range(1, MOST_TRIES + 1):
        try:
            with atomic(), connection.cursor() as cursor:
                return write(_writer(cursor))
        except OperationalError as error:
            if tries == MOST_TRIES or not _is_passing(error):
                raise
            time.sleep(min(0.05 * tries, 1))
    raise AssertionError("unreachable")


# Two cores: while one adds a batch, another is made ready for the next.
WRITERS = 2


@contextmanager
def side_by_side() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Gives a function that runs writes by several connections at once.

    It waits while too much waits already, and raises what one of them raised.
    Where everything is one connection's, they run at once, one by one.
    """
    if connection.vendor == "sqlite" or connection.in_atomic_block:
        yield lambda write: write()
        return
    waiting: deque[Future[None]] = deque()

    def run(write: Callable[[], None]) -> None:
        while len(waiting) > WRITERS:
            waiting.popleft().result()
        waiting.append(pool.submit(_on_own_connection, write))

    with ThreadPoolExecutor(WRITERS, thread_name_prefix="roster") as pool:
        yield run
        while waiting:
            waiting.popleft().result()


def _on_own_connection(write: Callable[[], None]) -> None:
    try:
        write()
    finally:
        # Each thread has one, which nobody else would close.
        connection.close()


def _writer(cursor: CursorWrapper) -> Staging:
    if connection.vendor == "sqlite":
        writer: Staging = SQLiteStaging(cursor)
    else:
        writer = PostgreSQLStaging(cursor)
        writer.run(f"SET LOCAL lock_timeout = '{BATCH_LOCK_TIMEOUT}'")
    for table, columns in BATCH_TABLES.items():
        writer.run(f"DROP TABLE IF EXISTS {table}")
        writer.create(table, columns)
    return writer


def _is_passing(error: OperationalError) -> bool:
    if connection.vendor == "sqlite":
        return "locked" in str(error)
    return getattr(error.__cause__, "pgcode", None) in _LATER
