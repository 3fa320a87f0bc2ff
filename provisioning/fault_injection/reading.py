"""The final read: plain SQL, over a connection that is the checker's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioning.fault_injection.verdict import Row

# A broken index would hide the second row of a key.
PAST_INDEXES = """
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
SET statement_timeout = 0;
"""
ROWS = """
SELECT respondent_id, item_id, state, value, revision
FROM survey_response
WHERE administration_id = %s
"""
COMPLETED = """
SELECT id FROM survey_respondent
WHERE administration_id = %s AND completed_at IS NOT NULL
"""
# By age, as their codes were written.
PEOPLE = """
SELECT id FROM survey_respondent WHERE administration_id = %s ORDER BY id LIMIT %s
"""


def stored_rows(connection: Any, administration: int) -> Iterator[Row]:
    with connection.cursor() as cursor:
        cursor.execute(PAST_INDEXES)
        cursor.execute(ROWS, [administration])
        for row in cursor:
            yield Row(*row)


def completed(connection: Any, administration: int) -> frozenset[int]:
    with connection.cursor() as cursor:
        cursor.execute(COMPLETED, [administration])
        return frozenset(one for (one,) in cursor)


def people(connection: Any, administration: int, most: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(PEOPLE, [administration, most])
        return [one for (one,) in cursor]
