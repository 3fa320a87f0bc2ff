"""Compare the content of the database before and after a request."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from django.apps import apps
from django.db import connection, transaction
from django.db.models import Model, Q

# Tables that a reading request may write to, and why.
WRITTEN_BY_READING: Mapping[str, str] = {
    "django_session": "a session starts, remembers a form, or is extended",
    "usersessions_usersession": "when and from where a session was last seen",
    "account_emailaddress": "allauth's copy of the user's own e-mail address",
    "accounts_auditentry": "reading identities is recorded",
}

# The first six characters of statements that change nothing.
READING_STATEMENTS = ("SELECT", "SAVEPO", "RELEAS", "ROLLBA", "SET LO", "RESET ")


# Rows written so far in this transaction, in savepoints that were rolled back too, by
# triggers too. Those of partitions count for their table.
WRITTEN_ROWS = """
    SELECT relname::text, sum(rows) FROM (
        SELECT COALESCE(pg_partition_root(oid), oid) AS whole,
            pg_stat_get_xact_tuples_inserted(oid)
            + pg_stat_get_xact_tuples_updated(oid)
            + pg_stat_get_xact_tuples_deleted(oid) AS rows
        FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
    ) AS written JOIN pg_class ON pg_class.oid = whole
    WHERE rows > 0 GROUP BY relname
"""


def all_tables() -> set[str]:
    models = apps.get_models(include_auto_created=True)
    tables = {model._meta.db_table for model in models if model._meta.managed}
    return tables - set(WRITTEN_BY_READING)


class WrittenTables:
    """The tables to which rows were written since this was created.

    Reading them all takes longer than the request, and most requests write to none.
    """

    def __init__(self) -> None:
        self.before = self._count()

    def names(self) -> set[str]:
        if connection.vendor != "postgresql":
            return all_tables()
        after = self._count()
        return {
            table
            for table in all_tables() & after.keys()
            if after[table] != self.before.get(table)
        }

    def _count(self) -> dict[str, int]:
        if connection.vendor != "postgresql":
            return {}
        return dict(_run(WRITTEN_ROWS, ()))


def table_digests(tables: Collection[str] | None = None) -> dict[str, str]:
    """Return the number of rows and a digest for each table, or for some."""
    digests = {}
    for table in sorted(all_tables() if tables is None else tables):
        records = _run(f"SELECT * FROM {connection.ops.quote_name(table)}", ())
        rows = sorted(repr(_comparable(row)) for row in records)
        digest = hashlib.sha256(repr(rows).encode()).hexdigest()
        digests[table] = f"{len(rows)} {digest}"
    return digests


class RelatedRows:
    """The given row of each model, and all rows that refer to one of them."""

    def __init__(self, rows: Mapping[type[Model], int]) -> None:
        # Built once, because that takes longer than to run them.
        self.statements: dict[str, tuple[str, tuple[object, ...]]] = {}
        for model in apps.get_models(include_auto_created=True):
            fields = model._meta.concrete_fields
            conditions = [("pk", rows[model])] if model in rows else []
            conditions += [
                (field.attname, rows[field.related_model])
                for field in fields
                if field.remote_field and field.related_model in rows
            ]
            if conditions and model._meta.db_table not in WRITTEN_BY_READING:
                among = Q(*conditions, _connector=Q.OR)
                related = model._default_manager.filter(among).values_list(
                    *(field.attname for field in fields)
                )
                statement = related.query.sql_with_params()
                self.statements[model._meta.db_table] = statement

    def digests(self, tables: Collection[str] | None = None) -> dict[str, str]:
        """Return the content of these rows for each table that has any, or for some."""
        return {
            table: repr(sorted(repr(_comparable(row)) for row in _run(*statement)))
            for table, statement in self.statements.items()
            if tables is None or table in tables
        }


def _run(sql: str, parameters: tuple[object, ...]) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()


def _comparable(row: tuple) -> list:
    # psycopg2 returns bytea as memoryview, whose repr is a memory address.
    return [bytes(value) if isinstance(value, memoryview) else value for value in row]


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """List the tables whose digests differ, of those in `after`."""
    return [table for table in after if before[table] != after[table]]


@contextmanager
def rolled_back() -> Iterator[None]:
    """Roll back everything that the block writes."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def recorded_writes() -> Iterator[list[str]]:
    """Collect writing statements, except to the tables in WRITTEN_BY_READING."""
    writes: list[str] = []

    def record(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        is_reading = str(sql).lstrip("( \n")[:6].upper() in READING_STATEMENTS
        if not is_reading and not any(
            f'"{name}"' in sql for name in WRITTEN_BY_READING
        ):
            writes.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        yield writes
