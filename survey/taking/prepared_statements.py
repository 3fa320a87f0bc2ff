"""Statements that PostgreSQL plans once, although a pooler stands between.

Planning takes PostgreSQL longer than saving a page. A prepared statement
belongs to one of the pooler's connections to the server, and nobody here
knows which of them runs the next statement. So it is asked for by name, and
where that name is unknown it is sent along: once for each connection of the
pooler, which keeps them for an hour.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from django.db import DatabaseError
from django.db.backends.utils import CursorWrapper

UNKNOWN, KNOWN_ALREADY = "26000", "42P05"
# A migration changed what the kept plan returns.
STALE = "0A000"
# Two that are needed by turns, on connections that take turns.
TRIES = 3


def execute(
    cursor: CursorWrapper, text: str, types: Sequence[str], parameters: Sequence[Any]
) -> None:
    """Execute `text`, prepared where that is possible.

    Nothing in it but %s is a %; `types` are the parameters' in PostgreSQL.
    """
    # Asking for a name that is not known would end a transaction.
    can = cursor.db.vendor == "postgresql" and not cursor.db.in_atomic_block
    way = execute_prepared if can else execute_plainly
    way(cursor, text, types, parameters)


def execute_prepared(
    cursor: CursorWrapper, text: str, types: Sequence[str], parameters: Sequence[Any]
) -> None:
    """Outside of any transaction; commits as the bare statement would.

    That a name is unknown, or its plan stale, is found out before anything is
    written.
    """
    prepare, execute = statements(text, tuple(types))
    for _ in range(TRIES):
        refusal = _refusal(cursor, execute, parameters, UNKNOWN, STALE)
        if refusal is None:
            return
        if refusal == STALE:
            break
        # In one message, so that both reach the same connection.
        both = f"{prepare}; {execute}"
        if _refusal(cursor, both, parameters, KNOWN_ALREADY) is None:
            return
    execute_plainly(cursor, text, types, parameters)


def execute_plainly(
    cursor: CursorWrapper, text: str, types: Sequence[str], parameters: Sequence[Any]
) -> None:
    cursor.execute(text, parameters)


def _refusal(
    cursor: CursorWrapper, text: str, parameters: Sequence[Any], *expected: str
) -> str | None:
    """None when it was done, else which of the expected errors there was."""
    try:
        cursor.execute(text, parameters)
    except DatabaseError as error:
        code = getattr(error.__cause__, "pgcode", None)
        if code not in expected:
            raise
        # The connection is as good as before.
        cursor.db.errors_occurred = False
        return code
    return None


@cache
def statements(text: str, types: tuple[str, ...]) -> tuple[str, str]:
    """To prepare it, and to execute it."""
    # By content: another release's may still be there, under its own name.
    name = f"page_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    first, *others = text.split("%s")
    numbered = first + "".join(f"${n}{one}" for n, one in enumerate(others, start=1))
    places = ", ".join(["%s"] * len(types))
    return (
        f"PREPARE {name} ({', '.join(types)}) AS {numbered}",
        f"EXECUTE {name} ({places})",
    )
