from __future__ import annotations

import pytest

from accounts.models import District, School
from survey.people.merging import places
from survey.people.merging.merges import confirm_merge, latest_job, request_merge
from survey.work import jobs


@pytest.fixture(autouse=True)
def jobs_run_by_hand(monkeypatch):
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    monkeypatch.setattr(places, "STARTS_TAKE", 0)


@pytest.fixture
def copy(db) -> District:
    """Riverside once more, under another code and name."""
    return District.objects.create(code="0017", name="Northfield Unified")


@pytest.fixture
def lincoln_copy(copy) -> School:
    return School.objects.create(district=copy, code="0042", name="Lincoln")


@pytest.fixture
def merge(staff):
    """Return a function that checks, confirms and does a merge."""

    def run(duplicate, target, *, keep="", by=staff.state):
        created = request_merge(duplicate, target, by=by)
        jobs.run(latest_job(created).pk)
        created.refresh_from_db()
        if created.state == "checked":
            go_on(created, keep=keep, by=by)
        return created

    def go_on(created, *, keep="", by=staff.state):
        confirm_merge(created, by=by, typed=created.duplicate_name, keep=keep)
        jobs.run(latest_job(created).pk)
        created.refresh_from_db()

    run.go_on = go_on
    return run
