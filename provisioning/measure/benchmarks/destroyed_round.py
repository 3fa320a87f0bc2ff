"""Destroy the answers of the administration 'measured'; for `destruction`."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from django.utils import timezone

from reports.models import ResultsRollUp
from survey.fieldwork.administrations import get_administration
from survey.models import Administration, DataKind, Destruction, Job, Retention
from survey.people.retention.destroy import KIND
from survey.people.retention.orders import order_destruction
from survey.work import jobs

# The period is over, and so is the month after the warning.
CLOSED, WARNED, KEPT_DAYS = timedelta(days=100), timedelta(days=40), 30


def order() -> int:
    """Let the period of the answers end, order their destruction; return its job."""
    measured, now = get_administration("measured"), timezone.now()
    Administration.objects.filter(pk=measured.pk).update(
        opens_at=now - 2 * CLOSED, closes_at=now - CLOSED
    )
    Retention.objects.create(
        administration=measured,
        answers_days=KEPT_DAYS,
        answers_warned_at=now - WARNED,
    )
    # Answers wait until results were counted after the closing.
    ResultsRollUp.objects.create(
        administration=measured, as_of=now, written_at=now, released_at=now, layout={}
    )
    destruction = order_destruction(measured, DataKind.ANSWERS)
    return int(Job.objects.get(kind=KIND, subject_id=destruction.pk).pk)


def destroy(*, job: int) -> dict[str, Any]:
    """Run the job as a worker does; return what was destroyed, and its seconds."""
    began = time.perf_counter()
    jobs.run(job)
    seconds = time.perf_counter() - began
    row = Job.objects.get(pk=job)
    destruction = Destruction.objects.get(pk=row.subject_id or 0)
    return {
        "state": destruction.state,
        "message": row.message,
        "rows": destruction.rows,
        "certified": hasattr(destruction, "certificate"),
        "seconds": round(seconds, 1),
    }
