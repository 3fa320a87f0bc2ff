"""Saving one page: one statement, on disk when it returns.

Autocommit on the primary. PostgreSQL and SQLite need a text each; the tests
hold both to one contract. Every guard stands inside the statement, so that a
finish, a withdrawal, an erasure or a reissued code at the same moment is
either seen or waits: FOR SHARE holds the respondent's own row, which those
four change first. It is nobody else's row, so nobody else waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any

from django.db import connection

from survey.taking.prepared_statements import execute

# A page that was begun in time may still arrive after the window closed.
GRACE = timedelta(minutes=10)
# What a tab has seen that does not say: everything.
ALL = 2**63 - 1


class Outcome(Enum):
    SAVED = "saved"
    SUPERSEDED = "superseded"
    FINISHED = "finished"
    WITHDRAWN = "withdrawn"
    CLOSED = "closed"
    REISSUED = "reissued"
    # Refused a moment ago, for a reason that has gone: ask again.
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True)
class Row:
    """One answer as it is stored; `value` is None unless `state` is 'a'."""

    item_id: int
    state: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Receipt:
    outcome: Outcome
    saved_at: datetime | None = None
    # By an earlier sending: the same receipt, which only a count tells apart.
    retried: bool = field(default=False, compare=False)


REPLACING = """ON CONFLICT (administration_id, respondent_id, item_id)
DO UPDATE SET state = excluded.state, value = excluded.value,
    revision = excluded.revision, saved_at = excluded.saved_at
WHERE survey_response.revision < excluded.revision
  AND (survey_response.revision <= %s OR survey_response.revision >= %s)
RETURNING saved_at"""

POSTGRESQL = """
WITH taker AS MATERIALIZED (
    SELECT r.id
    FROM survey_respondent r
    JOIN survey_administration a ON a.id = r.administration_id
    WHERE r.id = %s AND r.administration_id = %s AND r.issue = %s
      AND r.completed_at IS NULL AND r.withdrawn_at IS NULL
      AND now() < a.closes_at + interval '10 minutes'
    FOR SHARE OF r
)
INSERT INTO survey_response
    (administration_id, respondent_id, item_id, state, value, revision, saved_at)
SELECT %s, taker.id, i.item_id, i.state, i.value, %s, now()
FROM taker CROSS JOIN (VALUES {rows}) i (item_id, state, value)
{replacing}
"""

SQLITE = """
INSERT INTO survey_response
    (administration_id, respondent_id, item_id, state, value, revision, saved_at)
SELECT r.administration_id, r.id, i.column1, i.column2, i.column3, %s, %s
FROM survey_respondent r
JOIN survey_administration a ON a.id = r.administration_id
CROSS JOIN (VALUES {rows}) i
WHERE r.id = %s AND r.administration_id = %s AND r.issue = %s
  AND r.completed_at IS NULL AND r.withdrawn_at IS NULL
  AND a.closes_at > %s
{replacing}
"""

WHY = """
SELECT r.issue, r.completed_at, r.withdrawn_at, a.closes_at,
       x.item_id, x.state, x.value, x.revision, x.saved_at
FROM survey_respondent r
JOIN survey_administration a ON a.id = r.administration_id
LEFT JOIN survey_response x ON x.administration_id = %s
    AND x.respondent_id = r.id AND x.item_id IN ({items})
WHERE r.id = %s AND r.administration_id = %s
"""


def save_page(
    *,
    administration_id: int,
    respondent_id: int,
    issue: int,
    revision: int,
    rows: Sequence[Row],
    seen: int = ALL,
    base: int = 0,
) -> Receipt:
    """Store the answers of one page. 1 statement; 2 when it is refused.

    A receipt of SAVED means committed and flushed, now or by an earlier
    sending of the same page. All rows are written, or none.

    `seen` is the highest revision of this page that the tab has shown to its
    person, and its own revisions begin at `base`. A row in between was saved
    by an older tab after this one had loaded: replacing it would undo answers
    that this tab's person never saw, so it is SUPERSEDED and has to look.
    """
    # In the order of the key, so that two tabs never wait for each other.
    rows = sorted(rows, key=lambda row: row.item_id)
    if not rows:
        return Receipt(Outcome.SAVED, datetime.now(UTC))
    insert = _insert_sqlite if connection.vendor == "sqlite" else _insert_postgresql
    sight = (seen, base)
    written = insert(administration_id, respondent_id, issue, revision, rows, sight)
    if len(written) == len(rows):
        return Receipt(Outcome.SAVED, moment(written[0][0]))
    return _why(administration_id, respondent_id, issue, revision, rows, sight)


def _insert_postgresql(
    administration_id: int,
    respondent_id: int,
    issue: int,
    revision: int,
    rows: Sequence[Row],
    sight: tuple[int, int],
) -> list[tuple[Any, ...]]:
    parameters: list[Any] = [
        respondent_id,
        administration_id,
        issue,
        administration_id,
        revision,
    ]
    for row in rows:
        parameters += (row.item_id, row.state, row.value)
    parameters += sight
    text, types = _postgresql_text(len(rows)), _types(len(rows))
    with connection.cursor() as cursor:
        execute(cursor, text, types, parameters)
        return cursor.fetchall()


def _insert_sqlite(
    administration_id: int,
    respondent_id: int,
    issue: int,
    revision: int,
    rows: Sequence[Row],
    sight: tuple[int, int],
) -> list[tuple[Any, ...]]:
    now = datetime.now(UTC)
    adapt = connection.ops.adapt_datetimefield_value
    parameters: list[Any] = [revision, adapt(now)]
    for row in rows:
        parameters += (row.item_id, row.state, row.value)
    parameters += (respondent_id, administration_id, issue, adapt(now - GRACE), *sight)
    with connection.cursor() as cursor:
        cursor.execute(_sqlite_text(len(rows)), parameters)
        return cursor.fetchall()


@cache
def _postgresql_text(count: int) -> str:
    # The first row's casts give the columns their types: a page of blanks
    # would otherwise be a column of unknowns.
    first = "(%s::bigint, %s::text, %s::text)"
    rows = ", ".join([first] + ["(%s, %s, %s)"] * (count - 1))
    return POSTGRESQL.format(rows=rows, replacing=REPLACING)


@cache
def _types(count: int) -> tuple[str, ...]:
    return ("bigint",) * 5 + ("bigint", "text", "text") * count + ("bigint",) * 2


@cache
def _sqlite_text(count: int) -> str:
    rows = ", ".join(["(%s, %s, %s)"] * count)
    return SQLITE.format(rows=rows, replacing=REPLACING)


def _why(
    administration_id: int,
    respondent_id: int,
    issue: int,
    revision: int,
    rows: Sequence[Row],
    sight: tuple[int, int],
) -> Receipt:
    """Tell a retry, whose rows all stand, from a refusal. 1 statement."""
    items = [row.item_id for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(
            WHY.format(items=", ".join(["%s"] * len(items))),
            [administration_id, *items, respondent_id, administration_id],
        )
        found = cursor.fetchall()
    if not found:
        return Receipt(Outcome.WITHDRAWN)
    sent = {(row.item_id, row.state, row.value, revision) for row in rows}
    if sent == {tuple(row[4:8]) for row in found}:
        return Receipt(Outcome.SAVED, moment(found[0][8]), retried=True)
    now_issue, completed_at, withdrawn_at, closes_at = found[0][:4]
    if withdrawn_at is not None:
        return Receipt(Outcome.WITHDRAWN)
    if now_issue != issue:
        return Receipt(Outcome.REISSUED)
    if completed_at is not None:
        return Receipt(Outcome.FINISHED)
    if datetime.now(UTC) >= moment(closes_at) + GRACE:
        return Receipt(Outcome.CLOSED)
    seen, base = sight
    stored = [row[7] for row in found if row[7] is not None]
    if any(one >= revision or seen < one < base for one in stored):
        return Receipt(Outcome.SUPERSEDED)
    return Receipt(Outcome.UNCERTAIN)


def moment(value: datetime | str) -> datetime:
    """A time as either database returns it to a plain cursor."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value if value.tzinfo else value.replace(tzinfo=UTC)
