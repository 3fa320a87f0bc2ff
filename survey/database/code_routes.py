"""Find the respondent of an access code on a Citus cluster.

The table lies in shards by digest. It makes codes unique, because no unique key can
without the distribution key of `survey_respondent`. On one primary there is no such
table: its respondents' unique key does both, and nothing here runs a statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper

ADD = """
INSERT INTO survey_coderoute (digest, respondent_id)
SELECT * FROM unnest(%s::bytea[], %s::bigint[])
ON CONFLICT (digest) DO UPDATE SET respondent_id = CASE
    WHEN survey_coderoute.respondent_id = excluded.respondent_id
    THEN excluded.respondent_id END
"""
ADD_NEW = """
INSERT INTO survey_coderoute (digest, respondent_id) VALUES (%s, %s)
ON CONFLICT (digest) DO NOTHING
"""
FORGET = "DELETE FROM survey_coderoute WHERE digest = %s"
FIND = "SELECT respondent_id FROM survey_coderoute WHERE digest = %s"


def add_routes(
    cursor: CursorWrapper, digests: Sequence[bytes], respondents: Sequence[int]
) -> None:
    """Record new codes, in the transaction that gives them out.

    Raises IntegrityError where a code belongs to another person already. 1 statement
    on a cluster, none on one primary.
    """
    if settings.IS_DISTRIBUTED and digests:
        cursor.execute(ADD, [list(digests), list(respondents)])


def add_new_route(cursor: CursorWrapper, digest: bytes, respondent: int) -> bool:
    """Record the code of a new respondent, on a cluster. 1 statement.

    Return False where the code belongs to somebody: waits for who adds it as well.
    The taking role may do this, and change no route.
    """
    cursor.execute(ADD_NEW, [digest, respondent])
    return cursor.rowcount == 1


def forget_routes(digests: Iterable[bytes]) -> None:
    """Let codes lead to nobody. 1 statement for each code on a cluster, else none."""
    if settings.IS_DISTRIBUTED:
        with connection.cursor() as cursor:
            for digest in digests:
                cursor.execute(FORGET, [digest])


def find_respondent(cursor: CursorWrapper, digests: Sequence[bytes]) -> int | None:
    """Return the respondent of a code. 1 statement of one shard for each key."""
    for digest in digests:
        cursor.execute(FIND, [digest])
        if row := cursor.fetchone():
            return int(row[0])
    return None
