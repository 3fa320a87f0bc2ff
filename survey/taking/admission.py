"""An access code becomes a person, or a reason why not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from survey.models import Respondent
from survey.rosters.codes import digests, normalise
from survey.taking.saving import GRACE


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


def admit(typed: str) -> Admitted:
    """1 read by the code's unique index, and 1 write at the first start.

    Raises NotAdmitted. A withdrawn person's code is told from an unknown one
    only by whoever holds it, so saying so gives nothing away.
    """
    code = normalise(typed)
    if code is None:
        raise NotAdmitted("code_incomplete")
    found = (
        Respondent.objects.filter(code_digest__in=digests(code))
        .values_list(
            "id",
            "administration_id",
            "issue",
            "administration__published_id",
            "language",
            "started_at",
            "completed_at",
            "withdrawn_at",
            "administration__opens_at",
            "administration__closes_at",
            named=True,
        )
        .first()
    )
    if found is None:
        raise NotAdmitted("code_wrong")
    if found.withdrawn_at:
        raise NotAdmitted("withdrawn")
    now = timezone.now()
    if not found.completed_at:
        if now < found.administration__opens_at:
            raise NotAdmitted("not_open_yet", found.administration__opens_at)
        if now >= found.administration__closes_at + (
            GRACE if found.started_at else timedelta()
        ):
            raise NotAdmitted("closed_on", found.administration__closes_at)
        if found.started_at is None:
            Respondent.objects.filter(id=found.id, started_at=None).update(
                started_at=now
            )
    return Admitted(
        respondent_id=found.id,
        administration_id=found.administration_id,
        issue=found.issue,
        digest=found.administration__published_id,
        language=found.language,
        completed=found.completed_at is not None,
    )
