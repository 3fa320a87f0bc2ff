from __future__ import annotations

from datetime import date

import pytest

from survey.models import Erasure, Job, Respondent
from survey.people.erasing import erase
from survey.people.erasing.erase import ErasureRequest, order_erasure
from survey.tests.people import invite
from survey.work import jobs

ASKED = ErasureRequest(date(2026, 9, 1), "parent", "request")


@pytest.fixture(autouse=True)
def jobs_run_by_hand(monkeypatch):
    monkeypatch.setattr(jobs, "wake", lambda *_, **__: None)


def without_attributes(person: Respondent) -> Respondent:
    """Remove what makes codes of tests unique: it has the ID."""
    person.attributes = {}
    person.save(update_fields=["attributes"])
    return person


@pytest.fixture
def maya(administration, staff) -> Respondent:
    name, email = "Maya Zaragoza", "maya@zaragoza.org"
    person = invite(administration, staff.lincoln, "00123", name, email)
    return without_attributes(person)


@pytest.fixture
def ali(administration, staff) -> Respondent:
    person = invite(administration, staff.lincoln, "00124", "Ali Diaz", "ali@diaz.org")
    return without_attributes(person)


def run(erasure: Erasure) -> Erasure:
    job = Job.objects.get(kind=erase.KIND, subject_id=erasure.pk)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.message
    erasure.refresh_from_db()
    return erasure


def erased(*people: Respondent, by) -> Erasure:
    return run(order_erasure([person.pk for person in people], ASKED, by=by))
