"""Load a roster into temporary tables, to compare it with people in SQL.

PostgreSQL and SQLite differ in how rows are loaded, where primary keys come
from, and how long a transaction may last. The queries on these tables, in
`rosters.row_checks` and `rosters.diff`, are the same for both.

Changes are written in batches, each in a transaction of its own (see
`rosters.batch_writes`), so the temporary tables must outlive transactions.
pgbouncer gives each transaction another connection, so on PostgreSQL they live
in one long transaction on a separate connection. That one reads only.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.utils import CursorWrapper

from survey.database import advisory_locks

# What a database returns can be anything.
DatabaseRow = tuple[Any, ...]
SqlValue = str | int | bytes | None
Parameters = Sequence[SqlValue]
# PostgreSQL's own format of the rows of a query, or the query itself.
ExportedRows = bytes | tuple[str, Parameters]

_PERSON = """
    external_id text, grade text, classroom text, language text, given_name text,
    family_name text, email text, birth_date {date}
    """
# Filled from the file.
FILE_TABLES = {
    # Valid rows. `place` is a district and school as the file writes them.
    "roster_row": f"""
        row integer PRIMARY KEY, place integer, district text, {_PERSON},
        birth_date_day_first {{date}}, attributes {{json}}, previous_id text
        """,
    # People who have left, as the file says.
    "roster_left": """
        row integer PRIMARY KEY, place integer, district text, external_id text
        """,
    # The school that each place was matched with.
    "roster_place": """
        place integer PRIMARY KEY, district_id bigint, school_id bigint
        """,
    # One code can stand for two districts, where their names differ.
    "roster_district": "district text, district_id bigint",
    # People whose row was rejected; they are never withdrawn.
    "roster_exempt": "district text, external_id text",
    "roster_rejection": """
        sequence {sequence}, row integer, column_name text, reason text, cell text
        """,
}
# One batch of people, on the connection that writes.
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
# Made by queries of the comparison.
QUERY_TABLES = (
    # Second rows of one person.
    "roster_duplicate",
    # Row, respondent (if known) and what changes.
    "roster_match",
    # New people whose ID is a known one without its zeros.
    "roster_lost_zero",
    # Changed e-mail addresses that a school may not change.
    "roster_new_address",
    # IDs of joined records, and rows with such an ID.
    "roster_joined",
    "roster_joined_row",
    # Rows whose new and previous IDs lead to different people.
    "roster_conflict",
    # Respondents to withdraw.
    "roster_missing",
)
# Of a respondent `r` with the identity `i`: no row of the file names the person, not
# even a rejected one.
NOT_IN_FILE = """
    NOT EXISTS (
        SELECT 1 FROM roster_match WHERE roster_match.respondent_id = r.id)
    AND NOT EXISTS (
        SELECT 1 FROM roster_exempt AS e
        JOIN roster_district AS d ON d.district = e.district
        WHERE d.district_id = i.district_id AND e.external_id = i.external_id)
    """
# What the comparison reads of people, where they lie on several servers.
COPIED_PEOPLE = "roster_people"
_COPY_PEOPLE = """
    CREATE TEMPORARY TABLE roster_people ON COMMIT DROP AS
    WITH known AS MATERIALIZED (
        SELECT i.respondent_id FROM survey_identity AS i
        WHERE i.administration_id = %s AND {which}
    )
    SELECT r.id, r.administration_id, r.school_id, r.grade, r.classroom, r.language,
           r.attributes, r.started_at, r.withdrawn_at, r.opted_out_at, r.awaits_consent
    FROM survey_respondent AS r JOIN known ON known.respondent_id = r.id
    WHERE r.administration_id = %s
    """
# With more districts, most people of the administration are compared.
FEW_DISTRICTS = 50
# What happens to the person of a row: values of `roster_match.change`.
ADDED, CHANGED, MOVED, BACK, UNCHANGED = "a", "c", "m", "b", "u"
TABLES = (*FILE_TABLES, *BATCH_TABLES, *QUERY_TABLES, COPIED_PEOPLE)


def sql_keys(keys: Iterable[int]) -> str:
    """Return primary keys for `IN (...)`; 0, which no row has, if there are none."""
    return ", ".join(str(int(pk)) for pk in keys) or "0"


class Staging(ABC):
    """The temporary tables of one import."""

    # The comparison that also tells NULL from a value.
    differs: ClassVar[str]
    # How long a table stays.
    lifetime: ClassVar[str] = ""
    types: ClassVar[dict[str, str]]
    # The table with the people of the administration.
    people = "survey_respondent"

    def __init__(self, cursor: CursorWrapper) -> None:
        self.cursor = cursor

    def execute(self, sql: str, params: Parameters = ()) -> int:
        """Run one statement; return the number of rows it changed."""
        self.cursor.execute(sql, params)
        return self.cursor.rowcount

    def fetch_all(self, sql: str, params: Parameters = ()) -> list[DatabaseRow]:
        self.cursor.execute(sql, params)
        return self.cursor.fetchall()

    def fetch_in_batches(
        self, sql: str, params: Parameters = (), size: int = 5000
    ) -> Iterator[list[DatabaseRow]]:
        """Yield the rows of a query that ends in `row > %s ORDER BY row LIMIT %s`.

        Each batch is a query of its own, so that other statements can run
        in between and no side holds the whole result in memory.
        """
        after = -1
        while batch := self.fetch_all(sql, (*params, after, size)):
            yield batch
            after = batch[-1][0]

    def remove_rejected_rows(self, condition: str) -> None:
        """Delete rows of the file; their people are not withdrawn."""
        self.execute(
            f"""
            INSERT INTO roster_exempt
            SELECT district, external_id FROM roster_row WHERE {condition}
            UNION SELECT district, previous_id FROM roster_row
            WHERE previous_id <> '' AND ({condition})
            """  # noqa: S608
        )
        self.execute(f"DELETE FROM roster_row WHERE {condition}")  # noqa: S608

    @cached_property
    def identities_in_file(self) -> str:
        """An SQL condition for identities `i` of the districts in `roster_place`.

        The planner does not know that a roster names one district of 900, and would
        read the identities of all.
        """
        rows = self.fetch_all("SELECT DISTINCT district_id FROM roster_place")
        districts = sql_keys(pk for (pk,) in rows)
        if not 0 < len(rows) <= FEW_DISTRICTS:
            return "1 = 1"
        return f"i.district_id IN ({districts})"

    def copy_people(self, administration_id: int, *, everybody: bool) -> None:
        """Copy the people of districts in the file, or all, of a Citus cluster.

        Each statement that joins people with tables of this connection would read all
        people of the cluster: of the state, and of earlier administrations. This one
        sends the keys of identities to the nodes, and reads those people once. Call it
        once `roster_place` is complete. No statement on one primary.
        """
        if not settings.IS_DISTRIBUTED:
            return
        which = "1 = 1" if everybody else self.identities_in_file
        copied = _COPY_PEOPLE.format(which=which)
        self.execute(copied, [administration_id, administration_id])
        self.execute(f"CREATE UNIQUE INDEX roster_people_id ON {COPIED_PEOPLE} (id)")
        self.analyze(COPIED_PEOPLE)
        self.people = COPIED_PEOPLE

    def create_tables(self) -> None:
        self.drop_tables()
        for name, columns in FILE_TABLES.items():
            self.create_table(name, columns)

    def create_table(self, name: str, columns: str) -> None:
        columns = columns.format(**self.types)
        self.execute(f"CREATE TEMPORARY TABLE {name} ({columns}) {self.lifetime}")

    def drop_tables(self) -> None:
        for table in TABLES:
            self.execute(f"DROP TABLE IF EXISTS {table}")

    @abstractmethod
    def copy_rows(self, table: str, rows: Iterable[Sequence[SqlValue]]) -> None:
        """Insert rows into one of the tables, in the order of its columns."""

    @abstractmethod
    def export_rows(self, sql: str, params: Parameters) -> ExportedRows:
        """Take the rows of a query to the connection that writes."""

    @abstractmethod
    def import_batch(self, exported: ExportedRows, table: str = "roster_batch") -> None:
        """Put exported rows into a table with the same columns."""

    @abstractmethod
    def analyze(self, table: str) -> None:
        """Tell the query planner how large a temporary table became."""

    @abstractmethod
    def reserve_ids(self, count: int) -> list[int]:
        """Reserve primary keys of new respondents for the current transaction."""

    @abstractmethod
    def lock(self, administration_id: int) -> None:
        """Wait until no other import changes the same administration."""


class PostgreSQLStaging(Staging):
    differs = "IS DISTINCT FROM"
    # The pooler keeps the connection. A server process with temporary tables deletes
    # them when it ends, and nothing can end its wait for a standby that is away.
    lifetime = "ON COMMIT DROP"
    types: ClassVar = {
        "date": "date",
        "json": "jsonb",
        "bytes": "bytea",
        "sequence": "bigserial",
    }

    def disable_timeouts(self) -> None:
        # The role's timeouts suit a page turn. A roster of two million people
        # takes minutes, and may wait for another one.
        if settings.IS_DISTRIBUTED:
            # Also for the connections to the nodes.
            self.execute("SET LOCAL citus.propagate_set_commands = 'local'")
        for name in (
            "statement_timeout",
            "lock_timeout",
            "idle_in_transaction_session_timeout",
        ):
            self.execute(f"SET LOCAL {name} = 0")

    def drop_tables(self) -> None:
        self.execute(f"DROP TABLE IF EXISTS {', '.join(TABLES)}")

    def copy_rows(self, table: str, rows: Iterable[Sequence[SqlValue]]) -> None:
        # csv.writer is the fastest encoder that Python has; an empty cell is
        # NULL only in columns that allow it.
        file = io.StringIO()
        csv.writer(file).writerows(
            [f"\\x{cell.hex()}" if isinstance(cell, bytes) else cell for cell in row]
            if table == "roster_new"
            else row
            for row in rows
        )
        file.seek(0)
        self.cursor.copy_expert(_COPY[table], file)

    def export_rows(self, sql: str, params: Parameters) -> ExportedRows:
        # As bytes that Python never parses: 2 us per row instead of 20.
        rows = io.BytesIO()
        query = self.cursor.mogrify(sql, params).decode()
        self.cursor.copy_expert(f"COPY ({query}) TO STDOUT", rows)
        return rows.getvalue()

    def import_batch(self, exported: ExportedRows, table: str = "roster_batch") -> None:
        assert isinstance(exported, bytes)  # noqa: S101
        self.cursor.copy_expert(f"COPY {table} FROM STDIN", io.BytesIO(exported))

    def analyze(self, table: str) -> None:
        # Autovacuum cannot see temporary tables, and without statistics the
        # planner would join 100,000 rows in nested loops.
        self.execute(f"ANALYZE {table}")

    def reserve_ids(self, count: int) -> list[int]:
        reserved = self.fetch_all(
            "SELECT nextval(pg_get_serial_sequence('survey_respondent', 'id'))"
            " FROM generate_series(1, %s)",
            [count],
        )
        return [pk for (pk,) in reserved]

    def lock(self, administration_id: int) -> None:
        # Not the administration's row: changing its closing time must not wait
        # for an import. The lock ends with the transaction, also when the
        # worker is killed.
        self.execute(
            "SELECT pg_advisory_xact_lock(%s, %s)",
            [advisory_locks.ROSTER, administration_id],
        )


_COPY = {
    "roster_row": """
        COPY roster_row FROM STDIN (FORMAT csv, FORCE_NOT_NULL (
            district, external_id, grade, classroom, language, given_name,
            family_name, email, previous_id))
        """,
    "roster_left": "COPY roster_left FROM STDIN (FORMAT csv)",
    "roster_place": "COPY roster_place FROM STDIN (FORMAT csv)",
    "roster_district": "COPY roster_district FROM STDIN (FORMAT csv)",
    "roster_exempt": "COPY roster_exempt FROM STDIN (FORMAT csv)",
    "roster_rejection": """
        COPY roster_rejection (row, column_name, reason, cell)
        FROM STDIN (FORMAT csv, FORCE_NOT_NULL (column_name, reason, cell))
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

    def copy_rows(self, table: str, rows: Iterable[Sequence[SqlValue]]) -> None:
        if table == "roster_row":
            # Blank dates are NULL.
            rows = (
                [*row[:10], row[10] or None, row[11] or None, *row[12:]] for row in rows
            )
        self.cursor.executemany(_INSERT[table], list(rows))

    def export_rows(self, sql: str, params: Parameters) -> ExportedRows:
        # The same connection writes, so it can run the query itself.
        return sql, params

    def import_batch(self, exported: ExportedRows, table: str = "roster_batch") -> None:
        assert isinstance(exported, tuple)  # noqa: S101
        sql, params = exported
        self.execute(f"INSERT INTO {table} {sql}", params)  # noqa: S608

    def analyze(self, table: str) -> None:
        # SQLite's planner uses the indexes without statistics.
        pass

    def reserve_ids(self, count: int) -> list[int]:
        # The transaction is immediate, so no other one reserves the same.
        [(last,)] = self.fetch_all(
            "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = %s",
            ["survey_respondent"],
        )
        return list(range(last + 1, last + 1 + count))

    def lock(self, administration_id: int) -> None:
        # The embedded installation has one worker, so rosters never overlap.
        pass


_INSERT = {
    "roster_row": (
        "INSERT INTO roster_row VALUES"
        " (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    ),
    "roster_left": "INSERT INTO roster_left VALUES (%s, %s, %s, %s)",
    "roster_place": "INSERT INTO roster_place VALUES (%s, %s, %s)",
    "roster_district": "INSERT INTO roster_district VALUES (%s, %s)",
    "roster_exempt": "INSERT INTO roster_exempt VALUES (%s, %s)",
    "roster_rejection": (
        "INSERT INTO roster_rejection (row, column_name, reason, cell)"
        " VALUES (%s, %s, %s, %s)"
    ),
    "roster_new": "INSERT INTO roster_new VALUES (%s, %s, %s, %s)",
}


@contextmanager
def open_staging() -> Iterator[Staging]:
    """Create the temporary tables of one import; they and its lock end with it."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        separate = connections.create_connection(DEFAULT_DB_ALIAS)
        try:
            with separate.cursor() as cursor:
                cursor.execute("BEGIN")
                staging = PostgreSQLStaging(cursor)
                staging.disable_timeouts()
                staging.create_tables()
                yield staging
                cursor.execute("ROLLBACK")
        finally:
            separate.close()
    elif connection.vendor == "postgresql":
        # Another connection could not see what the caller has not committed.
        with connection.cursor() as cursor:
            staging = PostgreSQLStaging(cursor)
            staging.disable_timeouts()
            staging.create_tables()
            # A failed transaction removes the tables, and could not drop them.
            yield staging
            staging.drop_tables()
    else:
        # No transaction: it would keep every page save waiting while the file
        # is read. Each batch that is written has one of its own.
        with connection.cursor() as cursor:
            sqlite = SQLiteStaging(cursor)
            sqlite.create_tables()
            try:
                yield sqlite
            finally:
                sqlite.drop_tables()


@contextmanager
def loading_rows(staging: Staging) -> Iterator[None]:
    """Wrap the loading of `roster_row`.

    On SQLite a savepoint makes one deferred transaction of the many inserts;
    it touches the temporary database only, and blocks no other writer.
    """
    if connection.vendor != "sqlite":
        yield
    else:
        staging.execute("SAVEPOINT roster_rows")
        try:
            yield
        except BaseException:
            staging.execute("ROLLBACK TO roster_rows")
            staging.execute("RELEASE roster_rows")
            raise
        staging.execute("RELEASE roster_rows")
    staging.analyze("roster_row")
