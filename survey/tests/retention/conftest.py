from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from survey.models import (
    Administration,
    DataKind,
    Destruction,
    Job,
    LegalHold,
    Respondent,
    Retention,
)
from survey.people.retention import hooks, round_files
from survey.people.retention.destroy import KIND
from survey.people.retention.hold_changes import place_hold
from survey.people.retention.orders import order_destruction
from survey.tests.erasing.conftest import ali as ali  # noqa: PLC0414
from survey.tests.erasing.conftest import (
    jobs_run_by_hand as jobs_run_by_hand,  # noqa: PLC0414
)
from survey.tests.erasing.conftest import maya as maya  # noqa: PLC0414
from survey.tests.erasing.test_erase import fill
from survey.work import jobs

NAMES, ANSWERS = DataKind.IDENTITIES, DataKind.ANSWERS


@pytest.fixture(autouse=True)
def only_hooks_of_survey(monkeypatch):
    """Those of results are tested in `reports/tests/releases/test_retention.py`."""
    of_survey = [round_files.files_are_made, round_files.rosters_are_applied]
    monkeypatch.setattr(hooks, "_blockers", of_survey)
    monkeypatch.setattr(hooks, "_derived", [])


def close(administration: Administration, days: int = 40) -> Administration:
    """Let it have closed some days ago."""
    closed = timezone.now() - timedelta(days=days)
    administration.opens_at = closed - timedelta(days=30)
    administration.closes_at = closed
    administration.save(update_fields=["opens_at", "closes_at"])
    return administration


def keep_for(
    administration: Administration,
    warned_at: datetime | None = None,
    **days: int | None,
) -> Retention:
    warned = {f"{kind}_warned_at": warned_at for kind in (NAMES, ANSWERS)}
    row, _created = Retention.objects.update_or_create(
        administration=administration, defaults={**days, **warned}
    )
    return row


@pytest.fixture
def filled(administration, staff, maya, ali) -> Administration:
    """A round with two people, of whom each table has something, closed and warned."""
    for person in (maya, ali):
        fill(person, staff.dana)
    close(administration)
    warned_at = timezone.now() - timedelta(days=31)
    keep_for(administration, warned_at, identities_days=5, answers_days=5)
    return administration


def job_of(destruction: Destruction) -> Job:
    running = Job.objects.filter(kind=KIND, subject_id=destruction.pk)
    return running.order_by("-pk")[0]


def run(destruction: Destruction) -> Destruction:
    job = job_of(destruction)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.message
    destruction.refresh_from_db()
    return destruction


def destroy(administration: Administration, kind: str, by=None) -> Destruction:
    destruction = run(order_destruction(administration, kind, by=by))
    assert destruction.state == "done", job_of(destruction).message
    administration.refresh_from_db()
    return destruction


def hold(administration: Administration, staff, district=None) -> LegalHold:
    return place_hold(
        administration,
        holder="Office of the general counsel",
        reason="Roe v. Riverside",
        district=district,
        by=staff.dana if district else staff.state,
    )


def row_of(person: Respondent) -> Respondent:
    return Respondent.objects.get(pk=person.pk)
