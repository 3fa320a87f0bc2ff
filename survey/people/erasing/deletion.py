"""Delete the rows about one record, as the models declare it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from accounts.tables import Erasing
from survey.models import ListedId, Response
from survey.people.erasing.stored import (
    PersonRecords,
    person_fields,
    rows_about,
    rows_by_id,
)


def delete_rows(respondent: int, administration: int) -> Counter[str]:
    """Delete what is stored of an erased record; return the rows of each table.

    Also what a request in flight wrote afterwards, so that it can be called again.
    """
    deleted: Counter[str] = Counter()
    for model, rows in rows_about(respondent, administration, Erasing.RELEASED):
        deleted[model._meta.db_table] = rows.update(
            **dict.fromkeys(person_fields(model))
        )
    for model, rows in rows_about(respondent, administration, Erasing.DELETED):
        if model is Response and connection.vendor == "postgresql":
            deleted[model._meta.db_table] = _erase_answers(respondent, administration)
        else:
            deleted[model._meta.db_table] = raw_delete(rows)
    return deleted


def delete_ids(person: PersonRecords, administration: int) -> Counter[str]:
    """Delete IDs of lists that wait for a roster. 1 statement."""
    deleted = raw_delete(rows_by_id(person, administration))
    return Counter({ListedId._meta.db_table: deleted})


def raw_delete(rows: QuerySet[Any]) -> int:
    """Delete rows in 1 statement; those that refer to them are deleted apart."""
    return int(rows._raw_delete(rows.db))


def _erase_answers(respondent: int, administration: int) -> int:
    """Let the function of the tables' owner delete answers: migration 0017."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT survey_erase_answers(%s, %s)", [administration, respondent]
        )
        [(deleted,)] = cursor.fetchall()
    return int(deleted)
