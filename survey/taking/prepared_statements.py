"""Execute statements that PostgreSQL plans once, although a pooler is in between.

Planning takes PostgreSQL longer than saving a page. A prepared statement
belongs to one of the pooler's server connections, and the client can't know
which of them runs its next statement. So the statement is executed by name,
and prepared in the same message where that name is unknown: once for each
connection of the pooler, which keeps them for an hour.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.backends.utils import CursorWrapper

from survey.database.primary import PlainCursor

Cursor = CursorWrapper | PlainCursor

Parameter = str | int | bytes | datetime | None
CONSTANTS = {None: "NULL", True: "true", False: "false"}
# Texts that need nothing but quotation marks around them.
HARMLESS = re.compile(r"[0-9A-Za-z{},_]*", re.ASCII)

# SQLSTATEs: there is no statement of this name, and there is one already.
UNKNOWN, KNOWN_ALREADY = "26000", "42P05"
# A migration changed what the cached plan returns.
STALE = "0A000"
# Two statements that are executed by turns, on connections that take turns.
TRIES = 3
# Texts kept in memory: two for each administration, and those of saves and logins.
MOST_TEXTS = 512


def execute(
    cursor: Cursor,
    text: str,
    types: Sequence[str],
    parameters: Sequence[Parameter],
) -> None:
    """Execute `text` on PostgreSQL, as a prepared statement where that is possible.

    `types` are the PostgreSQL types of the parameters. `text` must contain no
    percent sign but those of its %s.
    """
    # Inside a transaction, executing an unknown name would end it; so would an
    # error by which the statement refuses what it was given.
    if cursor.db.in_atomic_block:
        with transaction.atomic(using=cursor.db.alias):
            cursor.execute(text, parameters)
    else:
        execute_prepared(cursor, text, types, parameters)


def execute_where_possible(
    cursor: Cursor,
    text: str,
    types: Sequence[str],
    parameters: Sequence[Parameter],
) -> None:
    """Execute a statement that refuses nothing: by name where that is possible.

    `types` are those of the parameters on PostgreSQL.
    """
    is_plain = cursor.db.in_atomic_block or settings.IS_DISTRIBUTED
    if is_plain or cursor.db.vendor != "postgresql":
        cursor.execute(text, parameters)
    else:
        execute_prepared(cursor, text, types, parameters)


def name_administration(text: str, administration_id: int) -> str:
    """Write the administration into a statement that reads answers.

    A plan for any administration locks the partitions of all, also that of one whose
    answers are being destroyed.
    """
    return text.replace("{administration}", str(int(administration_id)))


def execute_prepared(
    cursor: Cursor,
    text: str,
    types: Sequence[str],
    parameters: Sequence[Parameter],
) -> None:
    """Execute outside of a transaction; commits like the plain statement.

    PostgreSQL reports an unknown name or a stale plan before it writes anything.
    """
    prepare, execute = prepared_text(text, tuple(types))
    execute %= tuple(literals(cursor, parameters))
    for _ in range(TRIES):
        refusal = _try_to_execute(cursor, execute, UNKNOWN, STALE)
        if refusal is None:
            return
        # In one message, so that all of it reaches the same connection.
        both = f"{prepare}; {execute}"
        if refusal == STALE:
            # Otherwise every later save over that connection would fail first.
            both = f"DEALLOCATE {prepare.split()[1]}; {both}"
        refusal = _try_to_execute(cursor, both, UNKNOWN, KNOWN_ALREADY)
        if refusal is None:
            return
    cursor.execute(text, parameters)


def _try_to_execute(cursor: Cursor, text: str, *expected: str) -> str | None:
    """Execute, and return which of the expected errors occurred, if any."""
    try:
        cursor.execute(text)
    except DatabaseError as error:
        code = getattr(error.__cause__, "pgcode", None)
        if code not in expected:
            raise
        # The connection is still good.
        cursor.db.errors_occurred = False
        return code
    return None


def literals(cursor: Cursor, parameters: Sequence[Parameter]) -> Iterator[str]:
    """Return the parameters as SQL.

    psycopg2 asks each number whether it wants to know the connection, by an exception:
    a sixth of a save's instructions. It still writes all but the simplest values.
    """
    for value in parameters:
        if type(value) is int:
            yield str(value)
        elif value is None or value is True or value is False:
            yield CONSTANTS[value]
        elif type(value) is str and HARMLESS.fullmatch(value):
            yield f"'{value}'"
        else:
            yield _written_by_driver(cursor, value)


def _written_by_driver(cursor: Cursor, value: Parameter) -> str:
    from psycopg2.extensions import adapt

    quoted: Any = adapt(value)
    if hasattr(quoted, "prepare"):
        # How a backslash is written depends on the connection.
        quoted.prepare(cursor.db.connection)
    return quoted.getquoted().decode()


@lru_cache(maxsize=MOST_TEXTS)
def prepared_text(text: str, types: tuple[str, ...]) -> tuple[str, str]:
    """Return the statements that prepare `text`, and that execute it."""
    if not text.count("%") == text.count("%s") == len(types):
        raise ValueError("each percent sign has to be that of a parameter with a type")
    # Named by content: another release's statement may still be there.
    content = f"{', '.join(types)} {text}"
    name = f"page_{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    first, *rest = text.split("%s")
    numbered = first + "".join(f"${n}{part}" for n, part in enumerate(rest, start=1))
    places = ", ".join(["%s"] * len(types))
    return (
        f"PREPARE {name} ({', '.join(types)}) AS {numbered}",
        f"EXECUTE {name} ({places})",
    )
