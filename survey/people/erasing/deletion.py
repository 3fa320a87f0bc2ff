"""Delete the rows about one record, as the models declare it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from accounts.tables import Erasing
from survey.models import ListedId, Response
from survey.people.certificates.digests import digest_rows
from survey.people.erasing.stored import (
    PersonRecords,
    person_fields,
    rows_about,
    rows_by_id,
)


class Deletion:
    """The rows of each table that were deleted of one record, and their digests."""

    def __init__(self, digest_key: bytes | None = None) -> None:
        self.key = digest_key
        self.rows: Counter[str] = Counter()
        self.digests: dict[str, str] = {}

    def digest(self, rows: QuerySet[Any]) -> None:
        """Note the digest of rows before they are deleted. 1 statement with a key."""
        if self.key is not None:
            table = rows.model._meta.db_table
            self.digests[table] = digest_rows(self.key, rows).hexdigest()


def delete_rows(
    respondent: int, administration: int, digest_key: bytes | None = None
) -> Deletion:
    """Delete what is stored of an erased record.

    Also what a request in flight wrote afterwards, so that it can be called again. With
    a key it reads the rows first, for their digests.
    """
    deletion = Deletion(digest_key)
    for model, rows in rows_about(respondent, administration, Erasing.RELEASED):
        deletion.digest(rows)
        deletion.rows[model._meta.db_table] = rows.update(
            **dict.fromkeys(person_fields(model))
        )
    for model, rows in rows_about(respondent, administration, Erasing.DELETED):
        if model is Response and connection.vendor == "postgresql":
            _erase_answers(respondent, administration, deletion)
        else:
            deletion.digest(rows)
            deletion.rows[model._meta.db_table] = raw_delete(rows)
    return deletion


def delete_ids(person: PersonRecords, administration: int, deletion: Deletion) -> None:
    """Delete IDs of lists that wait for a roster. 1 statement, 2 with digests."""
    rows = rows_by_id(person, administration)
    deletion.digest(rows)
    deletion.rows[ListedId._meta.db_table] += raw_delete(rows)


def raw_delete(rows: QuerySet[Any]) -> int:
    """Delete rows in 1 statement; those that refer to them are deleted apart."""
    return int(rows._raw_delete(rows.db))


def _erase_answers(respondent: int, administration: int, deletion: Deletion) -> None:
    """Let the function of the tables' owner delete answers: migrations 0017, 0021.

    It makes the digest as well, because the worker's role reads no answer.
    """
    table = Response._meta.db_table
    with connection.cursor() as cursor:
        if deletion.key is None:
            cursor.execute(
                "SELECT survey_erase_answers(%s, %s)", [administration, respondent]
            )
            [(deletion.rows[table],)] = cursor.fetchall()
            return
        cursor.execute(
            "SELECT deleted, digest FROM survey_erase_answers(%s, %s, %s)",
            [administration, respondent, deletion.key],
        )
        [(deletion.rows[table], digest)] = cursor.fetchall()
        deletion.digests[table] = bytes(digest).hex()
