"""The keys of PostgreSQL's advisory locks; each number belongs to one purpose."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

# With the administration's id as the second key: one roster at a time.
ROSTER = 7_105_001
# One process rolls up response rates at a time.
ROLLUP = 7_105_002
# One process writes what message platforms read.
MESSAGES = 7_105_003
# One roster, or one import of schools, at a time creates districts and schools.
PLACES = 7_105_004
# One merge of districts or schools at a time.
MERGES = 7_105_006
# With the administration's id: placing a hold waits for what destroys its data, and
# these wait for it. They do not exclude each other, and so share it.
HOLDS = 7_105_007


def lock(*keys: int) -> None:
    """Wait for a lock, and hold it until the transaction ends. 1 statement.

    None on SQLite, which has one writer at a time.
    """
    _lock("pg_advisory_xact_lock", keys)


def lock_shared(*keys: int) -> None:
    """Wait for a lock that others may share until the transaction ends. 1 statement."""
    _lock("pg_advisory_xact_lock_shared", keys)


def _lock(function: str, keys: Sequence[int]) -> None:
    if connection.vendor == "postgresql":
        places = ", ".join(["%s"] * len(keys))
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {function}({places})", keys)
