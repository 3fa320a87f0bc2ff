"""Answer requests with the rights of the database role of a process of the stack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from psycopg2.extensions import TRANSACTION_STATUS_INERROR

from survey.tests.database.test_partitions import session


@contextmanager
def stack_roles() -> Iterator[None]:
    """Grant what the stack grants, and let the owner take the processes' roles."""
    if connection.vendor != "postgresql":
        yield
        return
    grants = Path(settings.SERVERS) / "etc" / "primary" / "grants.sql"
    with session("groundswell") as owner, session("postgres") as server:
        owner.execute(grants.read_text())
        server.execute("GRANT taking, console TO groundswell")
        try:
            yield
        finally:
            server.execute("REVOKE taking, console FROM groundswell")


@contextmanager
def as_database_role(role: str) -> Iterator[None]:
    """Run the block with the rights of a role, and undo it after a refusal."""
    if connection.vendor != "postgresql":
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL ROLE {role}")
        yield
        status = connection.connection.info.transaction_status
        if connection.needs_rollback or status == TRANSACTION_STATUS_INERROR:
            # The role ends with the savepoint.
            transaction.set_rollback(True)
        else:
            with connection.cursor() as cursor:
                cursor.execute("RESET ROLE")
