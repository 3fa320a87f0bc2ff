"""What one user may have waiting and on the disk, so that others get their turn."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.tests.logging_in import log_in
from reports.models import Export
from reports.tests.exports.conftest import with_release
from survey.models import Job
from survey.work import requested_files

pytestmark = pytest.mark.django_db


@pytest.fixture
def ask(client, fall):
    """Submit the form without running the job."""

    with_release(fall)

    def asked(user):
        log_in(client, user)
        given = {"format": "wide", "language": "en", "administrations": [fall.pk]}
        return client.post(reverse("export_new"), given)

    return asked


def test_a_user_has_five_exports_waiting_at_most(staff, ask):
    for _ in range(requested_files.MOST_UNFINISHED):
        assert ask(staff.analyst).status_code == 302
    refused = ask(staff.analyst)
    assert refused.status_code == 200
    assert "You have 5 files that are not ready yet." in refused.content.decode()
    assert Export.objects.count() == Job.objects.count() == 5
    # Another user is not affected, and an export that ends makes room.
    assert ask(staff.dana).status_code == 302
    first = Job.objects.filter(by=staff.analyst).earliest("pk")
    Job.objects.filter(pk=first.pk).update(
        state=Job.State.DONE, ended_at=timezone.now()
    )
    assert ask(staff.analyst).status_code == 302


def test_a_user_keeps_files_up_to_a_quota(staff, ask, monkeypatch):
    monkeypatch.setattr(requested_files, "MOST_BYTES", 3 * 10**9)
    now = timezone.now()
    exports = [
        Export.objects.create(
            by=staff.analyst,
            format="wide",
            made_at=now,
            expires_at=now,
            file_name=f"exports/{n}.csv",
            sha256="x",
            size=2 * 10**9,
        )
        for n in range(2)
    ]
    refused = ask(staff.analyst)
    assert "take 4 GB, and you may keep 3 GB" in refused.content.decode()
    assert ask(staff.dana).status_code == 302
    Export.objects.filter(pk=exports[0].pk).update(file_name="", deleted_at=now)
    assert ask(staff.analyst).status_code == 302
