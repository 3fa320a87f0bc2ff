from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from survey.models import BackupRun, DestructionCertificate, Erasure
from survey.people.certificates.issuing import certify_erasures
from survey.people.erasing import files
from survey.tests.erasing.conftest import ali, erased, jobs_run_by_hand, maya

__all__ = ["ali", "jobs_run_by_hand", "maya"]


@pytest.fixture
def backup():
    """A backup of last night, which says how long it is kept."""
    at = timezone.now() - timedelta(hours=9)
    return BackupRun.objects.create(
        kind="backup",
        ok=True,
        started_at=at,
        ended_at=at,
        details={"label": "20261201-020000F", "retention_days": 28},
    )


def completed(erasure: Erasure) -> Erasure:
    """Let the ten minutes after an erasure pass."""
    early = timezone.now() - timedelta(hours=1)
    Erasure.objects.filter(pk=erasure.pk).update(erased_at=early)
    assert files.follow_up_all() == 0
    erasure.refresh_from_db()
    return erasure


def certified(*people, by) -> DestructionCertificate:
    erasure = completed(erased(*people, by=by))
    assert certify_erasures() == 0
    return DestructionCertificate.objects.get(erasure=erasure)
