"""Empty the test database after tests that commit, quickly and despite triggers.

Django empties all tables with one TRUNCATE, which writes new files for each of some
500 tables and indexes, and then creates content types and permissions anew. Here
only rows are deleted, and content types and permissions stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib import import_module
from typing import Any

import psycopg2
import pytest
from django.conf import settings
from django.core.management.commands import flush

frozen = import_module("survey.migrations.0003_frozen_surveys")
frozen_measures = import_module("survey.migrations.0060_freeze_measures")
append_only = import_module("accounts.migrations.0003_audit_is_append_only")

# They are the same for each test.
KEPT = {"django_content_type", "auth_permission"}
# Deleted rows stay in their files, and would slow down later tests.
LARGE = 2**20


@pytest.fixture(scope="session", autouse=True)
def quick_flush() -> Iterator[None]:
    """Delete rows only. Each folder of tests that imports this has its own."""
    if flush.sql_flush is sql_flush:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "sql_flush", sql_flush)
        patch.setattr(flush, "emit_post_migrate_signal", lambda *_, **__: None)
        if settings.SERVERS:
            prepare_server()
        yield


def prepare_server() -> None:
    server = {"host": settings.SERVERS, "port": 5432, "user": "postgres"}
    with closing(psycopg2.connect(dbname="postgres", **server)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        # For disabling triggers.
        cursor.execute("GRANT SET ON PARAMETER session_replication_role TO groundswell")
        # Between two tests autovacuum would find that tables of many pages are
        # empty, and the planner would expect no row of a later test in them: a
        # roster of 1,700 people took minutes.
        cursor.execute("ALTER SYSTEM SET autovacuum = off")
        cursor.execute("SELECT pg_reload_conf()")


def sql_flush(style: Any, connection: Any, **options: Any) -> list[str]:
    tables = sorted(
        {*connection.introspection.django_table_names(only_existing=True)} - KEPT
    )
    if connection.vendor == "postgresql":
        return [delete_rows(tables)]
    triggers = (frozen, frozen_measures, append_only)
    away = [sql for module in triggers for sql in module.sqlite_reverse()]
    back = [sql for module in triggers for sql in module.sqlite()]
    return [*away, *connection.ops.sql_flush(style, tables), *back]


def delete_rows(tables: Sequence[str]) -> str:
    """Return a statement that waits for all writers, and empties the tables.

    TRUNCATE empties the large ones, with those that refer to them. Partitions are
    dropped: beside two hundred of earlier tests, opening an administration and
    counting all answers would take ten times as long.
    """
    names = ", ".join(f'"{table}"' for table in tables)
    return f"""
        DO $$
        DECLARE
            name regclass;
        BEGIN
            SET LOCAL session_replication_role = replica;
            LOCK TABLE {names} IN EXCLUSIVE MODE;
            FOREACH name IN ARRAY '{{{names}}}'::regclass[] LOOP
                IF pg_relation_size(name) > {LARGE} THEN
                    EXECUTE format('TRUNCATE %s CASCADE', name);
                ELSE
                    EXECUTE format('DELETE FROM %s', name);
                END IF;
            END LOOP;
            BEGIN
                SET LOCAL lock_timeout = '100ms';
                -- Not on Citus: without triggers it would keep its records of them.
                FOR name IN SELECT inhrelid::regclass FROM pg_inherits
                    WHERE inhparent = 'survey_response'::regclass
                    AND NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')
                LOOP
                    EXECUTE format('DROP TABLE %s', name);
                END LOOP;
            EXCEPTION WHEN lock_not_available THEN
                -- A request still reads them. The next test drops them.
                NULL;
            END;
        END $$
    """
