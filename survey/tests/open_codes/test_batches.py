"""Codes for all schools at once: a job that can be repeated."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry, Membership
from accounts.tests.logging_in import log_in
from survey.fieldwork.open_codes import batches
from survey.fieldwork.open_codes.codes import revoke_open_code
from survey.models import (
    Administration,
    Job,
    OpenCode,
    OpenCodeBatch,
    OpenCodeSeat,
)
from survey.tests.open_codes.cast import open_code, open_to_parents
from survey.tests.open_codes.test_console import errors_of, text_of, url
from survey.work import jobs

pytestmark = pytest.mark.django_db


@pytest.fixture
def parents(staff) -> Administration:
    return open_to_parents()


def order(client, parents, **fields):
    return client.post(url(parents, "all/"), {"label": "Spring", **fields})


def schools_with_codes() -> list[str]:
    return sorted(OpenCode.objects.values_list("school__name", flat=True))


def test_each_school_without_a_code_gets_one(
    client, staff, parents, django_capture_on_commit_callbacks
):
    open_code(parents, staff.lincoln)
    revoke_open_code(code=open_code(parents, staff.washington), by="a test")
    log_in(client, staff.state)
    assert "2 of 3 schools have no code" in text_of(client.get(url(parents, "all/")))
    with django_capture_on_commit_callbacks(execute=True):
        response = order(client, parents, limit="3")
    batch = OpenCodeBatch.objects.get()
    assert response.url == url(parents, f"all/{batch.pk}/")
    valid = OpenCode.objects.filter(revoked_at=None)
    names = valid.values_list("school__name", flat=True)
    assert sorted(names) == ["Lincoln", "Roosevelt", "Washington"]
    assert OpenCodeSeat.objects.count() == 6
    assert "2 codes were created" in text_of(client.get(response.url))
    entries = AuditEntry.objects.filter(by=staff.state.email)
    assert entries.filter(action="create open codes for all schools").count() == 1
    assert entries.filter(action="create open code").count() == 2
    # Again, there is nothing to do.
    assert "Every school has a code" in text_of(order(client, parents))
    assert OpenCodeBatch.objects.count() == 1


def test_a_district_creates_codes_for_its_own_schools(
    client, staff, parents, django_capture_on_commit_callbacks
):
    log_in(client, staff.dana)
    with django_capture_on_commit_callbacks(execute=True):
        order(client, parents)
    assert schools_with_codes() == ["Lincoln", "Washington"]
    batch = OpenCodeBatch.objects.get()
    log_in(client, staff.state)
    assert client.get(url(parents, f"all/{batch.pk}/")).status_code == 404
    log_in(client, staff.chen)
    assert client.get(url(parents, "all/")).status_code == 404


def test_a_worker_that_dies_leaves_no_school_with_two_codes(
    client, staff, parents, monkeypatch, django_capture_on_commit_callbacks
):
    monkeypatch.setattr(batches, "SCHOOLS_AT_ONCE", 1)
    log_in(client, staff.state)
    order(client, parents)
    batch = OpenCodeBatch.objects.get()

    class Killed(BaseException):
        pass

    def save_then_die(*args, **options):
        if OpenCode.objects.exists():
            raise Killed
        return save_codes(*args, **options)

    save_codes = batches.save_codes
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(batches, "save_codes", save_then_die)
        jobs.run(batch.job_id)
    assert len(schools_with_codes()) == 1
    long_ago = timezone.now() - jobs.DEAD_AFTER - timedelta(seconds=1)
    Job.objects.update(heartbeat_at=long_ago)
    assert jobs.run(batch.job_id)
    assert schools_with_codes() == ["Lincoln", "Roosevelt", "Washington"]
    batch.refresh_from_db()
    assert (batch.codes, batch.job.state) == (3, "done")


def test_the_job_checks_the_administration_and_the_role_again(client, staff, parents):
    log_in(client, staff.state)
    order(client, parents)
    order(client, parents)
    first, second = OpenCodeBatch.objects.order_by("pk")
    Administration.objects.update(denominator="roster")
    jobs.run(first.job_id)
    first.job.refresh_from_db()
    assert first.job.state == "failed" and "people on a roster" in first.job.message
    page = text_of(client.get(url(parents, f"all/{first.pk}/")))
    assert "0 codes were created" in page and "people on a roster" in page
    Administration.objects.update(denominator="count")
    Membership.objects.filter(user=staff.state).delete()
    jobs.run(second.job_id)
    assert not OpenCode.objects.exists()


def test_an_order_that_failed_is_continued(
    client, staff, parents, django_capture_on_commit_callbacks
):
    log_in(client, staff.dana)
    order(client, parents)
    batch = OpenCodeBatch.objects.get()
    Job.objects.update(state="failed", ended_at=timezone.now())
    with django_capture_on_commit_callbacks(execute=True):
        client.post(url(parents, f"all/{batch.pk}/again/"))
    assert schools_with_codes() == ["Lincoln", "Washington"]


def test_more_places_than_a_database_should_hold_are_refused(
    client, staff, parents, monkeypatch
):
    monkeypatch.setattr(batches, "MOST_SEATS", 5)
    log_in(client, staff.state)
    assert "more than 5 places" in errors_of(order(client, parents, limit="2"))
    assert "from 1 to 10,000" in errors_of(order(client, parents, limit="0"))
    assert not OpenCodeBatch.objects.exists() and not Job.objects.exists()
