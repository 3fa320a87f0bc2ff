"""Store the answers of one page, in one statement that is on disk when it returns.

The statement commits on its own, on the primary. PostgreSQL and SQLite need a
text each; the tests hold both to one contract. Every condition is inside the
statement, so that finishing, withdrawing, erasing or issuing a new code at the
same moment is either seen or waited for: FOR SHARE locks the respondent's row,
which those four change first. No other respondent's save waits for that row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.db import IntegrityError, transaction

from survey.database.primary import primary, primary_cursor
from survey.taking.prepared_statements import Parameter, execute

# A page that was started in time may still arrive after the window closed.
GRACE = timedelta(minutes=10)
# A tab's revisions are equal modulo this number: their low 20 bits are drawn at
# random when the tab is loaded, and show which rows are its own.
TABS = 2**20
# Codes of the databases' errors for NULL in a column that must have a value.
NULL = {"23502", "SQLITE_CONSTRAINT_NOTNULL"}


class Outcome(Enum):
    SAVED = "saved"
    SUPERSEDED = "superseded"
    FINISHED = "finished"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"
    CLOSED = "closed"
    REISSUED = "reissued"
    # Refused for a reason that was gone a moment later: the client retries.
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer as it is stored.

    `state` is a value of `Response.State`; `value` is None unless the item
    was answered.
    """

    item_id: int
    state: str
    value: str | None


class SeenRevisions(NamedTuple):
    """The rows that a tab has seen, in the order of the statement's parameters."""

    revisions: tuple[int, ...]
    # Of a client that does not say what it has seen.
    is_everything: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    outcome: Outcome
    saved_at: datetime | None = None
    # True if an earlier request stored these rows. The client gets the same
    # reply as the first time; only the metrics tell the two apart.
    retried: bool = field(default=False, compare=False)


# The list is one parameter, so that its length does not change the statement.
IS_SHOWN = "= ANY(%s::bigint[])"
IS_SHOWN_IN_SQLITE = "IN (SELECT value FROM json_each(%s))"

# NULL is no revision: the database refuses the whole statement for such a row. So
# a save stores all its rows or none. A repeated save finds its rows stored, and
# is no error.
ON_CONFLICT = f"""ON CONFLICT (administration_id, respondent_id, item_id)
DO UPDATE SET state = excluded.state, value = excluded.value,
    saved_at = excluded.saved_at, revision = CASE
    WHEN survey_response.revision < excluded.revision
      AND (survey_response.revision {IS_SHOWN}
        OR %s
        OR (survey_response.revision & {TABS - 1}) = (excluded.revision & {TABS - 1}))
    THEN excluded.revision END
WHERE survey_response.revision <> excluded.revision
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
{on_conflict}
"""

# On a Citus cluster: one call, which the coordinator hands to the node of the shard.
# The function's text is survey/database/sql/save_page.sql. NULL where it refuses.
ON_CLUSTER = """
SELECT survey_save_page(%s::bigint, %s::bigint, %s::integer, %s::bigint, %s::bigint[],
    %s::text[], %s::text[], %s::bigint[], %s::boolean)
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
{on_conflict}
"""

CURRENT_ROWS = """
SELECT r.issue, r.completed_at, r.declined_at, r.withdrawn_at, a.closes_at,
       x.item_id, x.state, x.value, x.revision, x.saved_at
FROM survey_respondent r
JOIN survey_administration a ON a.id = r.administration_id
LEFT JOIN survey_response x ON x.administration_id = %s
    AND x.respondent_id = r.id AND x.item_id IN ({items})
WHERE r.id = %s AND r.administration_id = %s
"""


@cache
def postgresql_insert(count: int) -> tuple[str, tuple[str, ...]]:
    """The statement for `count` rows, and the types of its parameters."""
    # The first row's casts give the columns their types: on a page of blanks
    # PostgreSQL could not infer them.
    first = "(%s::bigint, %s::text, %s::text)"
    rows = ", ".join([first] + ["(%s, %s, %s)"] * (count - 1))
    types = ("bigint",) * 5 + ("bigint", "text", "text") * count
    types += ("bigint[]", "boolean")
    return POSTGRESQL.format(rows=rows, on_conflict=ON_CONFLICT), types


@cache
def sqlite_insert(count: int) -> str:
    rows = ", ".join(["(%s, %s, %s)"] * count)
    on_conflict = ON_CONFLICT.replace(IS_SHOWN, IS_SHOWN_IN_SQLITE)
    return SQLITE.format(rows=rows, on_conflict=on_conflict)


def save_page(
    *,
    administration_id: int,
    respondent_id: int,
    issue: int,
    revision: int,
    rows: Sequence[AnswerRow],
    seen: int | None = None,
    shown: Sequence[int] = (),
) -> Receipt:
    """Store the answers of one page. 1 statement; 2 when it is refused.

    A receipt of SAVED means committed and flushed, now or by an earlier
    request with the same page. Any other outcome means that nothing was written.

    A row is replaced only by a higher revision, and only by a tab that has seen
    it: the tab was loaded with it, or wrote it, as the low bits of its revision
    say. `seen` is the highest revision of the page's rows that the tab was loaded
    with; `shown` lists all of them if they differ. Replacing any other row would
    undo answers that the respondent never saw in this tab: that is SUPERSEDED.
    Without `seen`, as load generators save, every row counts as seen.
    """
    # In the order of the primary key, so that two tabs never deadlock.
    rows = sorted(rows, key=lambda row: row.item_id)
    if not rows:
        return Receipt(Outcome.SAVED, datetime.now(UTC))
    rows_seen = SeenRevisions((*shown, seen or 0), seen is None)
    values: list[Parameter] = []
    for row in rows:
        values += (row.item_id, row.state, row.value)
    connection = primary()
    try:
        with primary_cursor() as cursor:
            if connection.vendor == "sqlite":
                now = datetime.now(UTC)
                adapt = connection.ops.adapt_datetimefield_value
                guards = (respondent_id, administration_id, issue, adapt(now - GRACE))
                cursor.execute(
                    sqlite_insert(len(rows)),
                    [revision, adapt(now), *values, *guards]
                    + [
                        json.dumps(rows_seen.revisions),
                        rows_seen.is_everything,
                    ],
                )
            elif settings.IS_DISTRIBUTED:
                columns = map(list, zip(*map(astuple, rows), strict=True))
                parameters: list[Any] = [respondent_id, administration_id, issue]
                parameters += [revision, *columns]
                parameters += [
                    list(rows_seen.revisions),
                    rows_seen.is_everything,
                ]
                # Inside a transaction, an error by which it refuses would end it.
                in_block = connection.in_atomic_block
                with transaction.atomic() if in_block else nullcontext():
                    cursor.execute(ON_CLUSTER, parameters)
            else:
                text, types = postgresql_insert(len(rows))
                taker = (respondent_id, administration_id, issue, administration_id)
                revisions = f"{{{','.join(map(str, rows_seen.revisions))}}}"
                seen_rows = (revisions, rows_seen.is_everything)
                execute(cursor, text, types, [*taker, revision, *values, *seen_rows])
            written = cursor.fetchall()
    except IntegrityError as error:
        # Only if ON_CONFLICT refused a row.
        cause = error.__cause__
        codes = {getattr(cause, name, "") for name in ("pgcode", "sqlite_errorname")}
        if codes.isdisjoint(NULL):
            raise
        written = []
    if settings.IS_DISTRIBUTED:
        written = [row for row in written if row[0] is not None] * len(rows)
    if len(written) == len(rows):
        return Receipt(Outcome.SAVED, as_datetime(written[0][0]))
    return _explain_refusal(
        administration_id, respondent_id, issue, revision, rows, rows_seen
    )


def _explain_refusal(
    administration_id: int,
    respondent_id: int,
    issue: int,
    revision: int,
    rows: Sequence[AnswerRow],
    rows_seen: SeenRevisions,
) -> Receipt:
    """Tell a repeated save, whose rows are all stored, from a refusal. 1 statement."""
    items = [row.item_id for row in rows]
    with primary().cursor() as cursor:
        cursor.execute(
            CURRENT_ROWS.format(items=", ".join(["%s"] * len(items))),
            [administration_id, *items, respondent_id, administration_id],
        )
        stored_rows = cursor.fetchall()
    if not stored_rows:
        return Receipt(Outcome.WITHDRAWN)
    sent = {(row.item_id, row.state, row.value, revision) for row in rows}
    if sent == {tuple(row[5:9]) for row in stored_rows}:
        return Receipt(Outcome.SAVED, as_datetime(stored_rows[0][9]), retried=True)
    current_issue, completed_at, declined_at, withdrawn_at, closes_at = stored_rows[0][
        :5
    ]
    if withdrawn_at is not None:
        return Receipt(Outcome.WITHDRAWN)
    if current_issue != issue:
        return Receipt(Outcome.REISSUED)
    if declined_at is not None:
        return Receipt(Outcome.DECLINED)
    if completed_at is not None:
        return Receipt(Outcome.FINISHED)
    if datetime.now(UTC) >= as_datetime(closes_at) + GRACE:
        return Receipt(Outcome.CLOSED)
    stored = [row[8] for row in stored_rows if row[8] is not None]
    if all(_may_replace(saved, revision, rows_seen) for saved in stored):
        return Receipt(Outcome.UNCERTAIN)
    return Receipt(Outcome.SUPERSEDED)


def _may_replace(stored: int, revision: int, rows_seen: SeenRevisions) -> bool:
    """Apply the condition of ON_CONFLICT to one stored revision."""
    is_own = stored % TABS == revision % TABS
    is_seen = rows_seen.is_everything or stored in rows_seen.revisions
    return stored < revision and (is_own or is_seen)


def as_datetime(value: datetime | str) -> datetime:
    """Convert a timestamp as a plain cursor of either database returns it."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value if value.tzinfo else value.replace(tzinfo=UTC)
