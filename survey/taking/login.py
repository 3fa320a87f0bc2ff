"""An access code becomes a person, or a reason why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import connection
from django.utils import timezone

from survey.access_codes import digests, normalise
from survey.models import Respondent
from survey.taking.storage import GRACE, moment


@dataclass(frozen=True, slots=True)
class Admitted:
    respondent_id: int
    administration_id: int
    issue: int
    digest: str
    language: str
    completed: bool


class NotAdmitted(Exception):
    """`key` names the message; `moment` is when it opens or closed."""

    def __init__(self, key: str, moment: datetime | None = None) -> None:
        super().__init__(key)
        self.key = key
        self.moment = moment


# By hand: putting the ORM's text together took longer than all the rest.
PERSON = """
SELECT r.id, r.administration_id, r.issue, a.published_id, r.language,
       r.started_at, r.completed_at, r.withdrawn_at, a.opens_at, a.closes_at
FROM survey_respondent r
JOIN survey_administration a ON a.id = r.administration_id
WHERE r.code_digest IN ({places})
"""


class _Person(NamedTuple):
    id: int
    administration_id: int
    issue: int
    published_id: str
    language: str
    started_at: datetime | None
    completed_at: datetime | None
    withdrawn_at: datetime | None
    opens_at: datetime
    closes_at: datetime


def admit(typed: str) -> Admitted:
    """1 read by the code's unique index, and 1 write at the first start.

    Raises NotAdmitted. A withdrawn person's code is told from an unknown one
    only by whoever holds it, so saying so gives nothing away.
    """
    code = normalise(typed)
    if code is None:
        raise NotAdmitted("code_incomplete")
    found = _person(digests(code))
    if found is None:
        raise NotAdmitted("code_wrong")
    if found.withdrawn_at:
        raise NotAdmitted("withdrawn")
    now = timezone.now()
    if not found.completed_at:
        if now < found.opens_at:
            raise NotAdmitted("not_open_yet", found.opens_at)
        if now >= found.closes_at + (GRACE if found.started_at else timedelta()):
            raise NotAdmitted("closed_on", found.closes_at)
        if found.started_at is None:
            Respondent.objects.filter(id=found.id, started_at=None).update(
                started_at=now
            )
    return Admitted(
        respondent_id=found.id,
        administration_id=found.administration_id,
        issue=found.issue,
        digest=found.published_id,
        language=found.language,
        completed=found.completed_at is not None,
    )


def _person(digests: Sequence[bytes]) -> _Person | None:
    text = PERSON.format(places=", ".join(["%s"] * len(digests)))
    with connection.cursor() as cursor:
        cursor.execute(text, digests)
        row = cursor.fetchone()
    if row is None:
        return None
    moments = [moment(one) if one else None for one in row[5:]]
    return _Person(*row[:5], *moments)
