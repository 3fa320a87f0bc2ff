"""Read a respondent's saved answers from the primary, in one statement."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import Any

from django.conf import settings
from django.db import connection

from survey.taking import places
from survey.taking.devices import ONLY_DEVICE
from survey.taking.prepared_statements import (
    execute_where_possible,
    name_administration,
)
from survey.taking.published import Published
from survey.taking.session import RespondentSession
from survey.taking.storage import GRACE, as_datetime

# A row of the person, and one for each answer. A join would repeat the person
# in every row, which took longer to send and to read than the answers; so would
# columns of the person, which are empty there. The place is JSON as a text within: see
# `places.COLUMN`.
SAVED_ANSWERS = """
SELECT NULL AS item_id, CAST({array}(r.issue, r.completed_at,
       r.withdrawn_at, r.declined_at, a.closes_at, {clock}, a.replays_answers,
       {only_device}, a.role, a.district_pages_limit,
       a.allows_declining AND r.open_code_id IS NULL, {place} || '') AS text) AS value,
       NULL AS revision
FROM survey_respondent r
JOIN survey_administration a ON a.id = r.administration_id
{place_joins}
WHERE r.id = %s AND r.administration_id = %s
UNION ALL
SELECT x.item_id, x.value, x.revision
FROM survey_response x
WHERE x.administration_id = {{administration}} AND x.respondent_id = %s
"""
CLOCK = {
    "postgresql": "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    "sqlite": "NULL",
}
# The revision of an item that has no row.
MISSING = {None}


@dataclass(frozen=True)
class SavedAnswers:
    """`answers` maps each item that has a row to its text, None if left blank.

    With `hidden`, this device may not show them, nor that the person has finished:
    `completed_at` is None.

    `revision` is where the next tab starts counting: above every stored
    revision, and not below the primary's clock in microseconds.
    """

    answers: Mapping[str, str | None]
    revision: int
    # Sum of revisions and number of rows: any replaced or added row changes it.
    fingerprint: tuple[int, int]
    completed_at: datetime | None
    closes_at: datetime
    hidden: bool
    # Whether the person has finished, also where this device may not show it.
    is_finished: bool
    # Of the administration: adults are addressed more formally.
    role: str
    # Most pages that a district may add after this round; 0: none.
    district_pages: int = 0
    # Whether the first page offers not to take part.
    may_decline: bool = False
    # Of each stored row, by the item's id.
    revisions: Mapping[int, int] = field(default_factory=dict)
    # Of each page.
    item_ids: Sequence[Sequence[int]] = ()
    # What the page around the survey shows of the school.
    place: places.PlaceOnPage = places.NOWHERE

    @cached_property
    def shown(self) -> Sequence[Sequence[int]]:
        """The stored revisions of each page.

        There may be several: pages are saved in parts until the person passes them.
        """
        revision_of: Callable[[int], Any] = self.revisions.get
        return [sorted({*map(revision_of, page)} - MISSING) for page in self.item_ids]

    @property
    def seen(self) -> Sequence[int]:
        """The highest stored revision of each page, 0 where it has no row.

        One number for the whole survey would hide a page that arrives late.
        """
        return [max(page, default=0) for page in self.shown]


class SessionEnded(Exception):
    """This person may not go on.

    `reissued`, `withdrawn`, `declined`, `closed` or `session`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read_saved_answers(
    session: RespondentSession, published: Published, device: str
) -> SavedAnswers:
    """Read all answers of one person. 1 statement. Raises SessionEnded.

    2 statements on a cluster: the place is on another node.
    """
    administration, respondent = session.administration_id, session.respondent_id
    is_distributed = settings.IS_DISTRIBUTED
    query = _query(connection.vendor, is_distributed=is_distributed)
    with connection.cursor() as cursor:
        execute_where_possible(
            cursor,
            name_administration(query, administration),
            ("bigint",) * 3,
            [respondent, administration, respondent],
        )
        rows = cursor.fetchall()
        # The order of rows is the database's.
        n = next((n for n, row in enumerate(rows) if row[0] is None), None)
        person = None if n is None else json.loads(rows.pop(n)[1])
        if person and is_distributed:
            cursor.execute(places.OF_SCHOOL[connection.vendor], [person[-1]])
            [person[-1]] = cursor.fetchone()
    if person is None or person[2] is not None:
        raise SessionEnded("withdrawn")
    issue, completed_at, _, declined_at, closes_at, clock = person[:6]
    replays_answers, only_device, role, district_pages, may_decline, place = person[6:]
    hidden = not replays_answers and (not device or only_device != device)
    is_finished = completed_at is not None
    if hidden:
        completed_at = None
    if issue != session.issue:
        raise SessionEnded("reissued")
    if declined_at is not None:
        raise SessionEnded("declined")
    closes_at = as_datetime(closes_at)
    clock = clock or now_in_microseconds()
    # As for a page save: only if the clock of this host says so too.
    earlier = min(clock, now_in_microseconds())
    is_closed = earlier >= (closes_at + GRACE).timestamp() * 1_000_000
    if completed_at is None and is_closed:
        raise SessionEnded("closed")
    if completed_at is not None:
        completed_at = as_datetime(completed_at)
        if session.has_ended(completed_at):
            raise SessionEnded("session")
    revisions = {item: revision for item, _, revision in rows}
    return SavedAnswers(
        answers={
            published.names[item]: value
            for item, value, _ in rows
            if item in published.names
        },
        revision=max(clock - 1, *revisions.values(), 0) + 1,
        fingerprint=(sum(revisions.values()), len(rows)),
        completed_at=completed_at,
        closes_at=closes_at,
        hidden=hidden,
        is_finished=is_finished,
        role=role,
        district_pages=district_pages,
        may_decline=bool(may_decline),
        revisions=revisions,
        item_ids=published.item_ids,
        place=places.parse_place(place),
    )


@cache
def _query(vendor: str, *, is_distributed: bool) -> str:
    column = "r.school_id::text" if is_distributed else places.COLUMN[vendor]
    return SAVED_ANSWERS.format(
        array=places.ARRAY[vendor],
        clock=CLOCK[vendor],
        only_device=ONLY_DEVICE,
        place=column,
        place_joins="" if is_distributed else places.JOINS,
    )


def now_in_microseconds() -> int:
    return int(datetime.now(UTC).timestamp() * 1_000_000)
