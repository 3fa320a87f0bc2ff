"""What a person has answered so far, read from the primary in one statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection

from survey.taking.published import Published
from survey.taking.session import RespondentSession
from survey.taking.storage import GRACE, moment

TAKEN = """
SELECT r.issue, r.completed_at, r.withdrawn_at, a.closes_at, {clock},
       x.item_id, x.value, x.revision
FROM survey_respondent r
JOIN survey_administration a ON a.id = r.administration_id
LEFT JOIN survey_response x ON x.administration_id = %s AND x.respondent_id = r.id
WHERE r.id = %s AND r.administration_id = %s
"""
CLOCK = {
    "postgresql": "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    "sqlite": "NULL",
}


@dataclass(frozen=True, slots=True)
class SavedAnswers:
    """`answers` maps the name of every item that has a row to its text or None.

    `revision` is the base from which the next tab counts: above every stored
    revision and not below the primary's clock in microseconds.
    """

    answers: Mapping[str, str | None]
    revision: int
    # The highest stored revision of each page, 0 where it has no row: one for
    # the whole survey would hide a page that arrives late.
    seen: Sequence[int]
    # What a review was of: any replaced or added row changes this pair.
    fingerprint: tuple[int, int]
    completed_at: datetime | None
    closes_at: datetime


class SessionEnded(Exception):
    """The session's person may not go on: `reissued`, `withdrawn`, `closed`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read_saved_answers(taking: RespondentSession, published: Published) -> SavedAnswers:
    """1 statement on the primary. Raises NoLongerTaking."""
    with connection.cursor() as cursor:
        cursor.execute(
            TAKEN.format(clock=CLOCK[connection.vendor]),
            [taking.administration_id, taking.respondent_id, taking.administration_id],
        )
        found = cursor.fetchall()
    if not found or found[0][2] is not None:
        raise SessionEnded("withdrawn")
    issue, completed_at, _, closes_at, clock = found[0][:5]
    if issue != taking.issue:
        raise SessionEnded("reissued")
    closes_at = moment(closes_at)
    if completed_at is None and datetime.now(UTC) >= closes_at + GRACE:
        raise SessionEnded("closed")
    rows = [row[5:] for row in found if row[5] is not None]
    seen = _seen(published, {item: revision for item, _, revision in rows})
    return SavedAnswers(
        answers={
            published.names[item]: value
            for item, value, _ in rows
            if item in published.names
        },
        revision=max(*seen, 0, (clock or microseconds()) - 1) + 1,
        seen=seen,
        fingerprint=(sum(revision for _, _, revision in rows), len(rows)),
        completed_at=moment(completed_at) if completed_at else None,
        closes_at=closes_at,
    )


def _seen(published: Published, revisions: Mapping[int, int]) -> list[int]:
    return [
        max((revisions.get(item["id"], 0) for item in items.values()), default=0)
        for items in published.answerable
    ]


def microseconds() -> int:
    return int(datetime.now(UTC).timestamp() * 1_000_000)
