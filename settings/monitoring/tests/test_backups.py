from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import User
from accounts.tests.logging_in import log_in
from settings.monitoring import dependency_checks
from settings.monitoring.answers import NOT_SET_UP
from settings.monitoring.backups import read_backups
from settings.monitoring.metrics_page import SERVER_METRICS, families_of
from survey.models import BackupRun


@pytest.fixture
def probe(monkeypatch):
    """Ask on the connection of the test, whose rows no other one sees."""

    class Probe:
        def __init__(self, alias: str) -> None:
            assert alias == "default"

        def rows(self, statement: str) -> list[dict]:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                names = [column.name for column in cursor.description]
                return [dict(zip(names, row, strict=True)) for row in cursor]

        def close(self) -> None:
            pass

    monkeypatch.setattr(dependency_checks, "PostgreSQLProbe", Probe)


def run_of(kind: str, *, days: int, ok: bool = True, **details: float) -> BackupRun:
    ended = timezone.now() - timedelta(days=days)
    return BackupRun.objects.create(
        kind=kind, ok=ok, started_at=ended, ended_at=ended, details=details
    )


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="has no archive")
def test_the_last_backup_that_succeeded_and_the_last_drill_are_published(probe):
    drill = run_of("backup", days=2, certificate_ends=2e9)
    # It failed, and says why: the certificate is over.
    run_of("backup", days=1, ok=False, certificate_ends=0.0)
    run_of("drill", days=9)
    last = run_of("drill", days=3, ok=False)
    answer = read_backups()
    samples = {name: value for name, value, _ in answer.samples}
    assert samples["backup_timestamp_seconds"] == pytest.approx(
        drill.ended_at.timestamp()
    )
    assert samples["drill_timestamp_seconds"] == pytest.approx(
        last.ended_at.timestamp()
    )
    assert samples["backup_certificate_timestamp_seconds"] == 0
    assert samples["drill_ok"] == 0
    assert samples.keys() <= SERVER_METRICS.keys()
    assert families_of(answer.samples)


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="has no archive")
def test_what_never_happened_has_no_sample(probe):
    names = {name for name, _, _ in read_backups().samples}
    assert not names & {
        *("backup_timestamp_seconds", "drill_ok", "restore_point_timestamp_seconds")
    }


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="has no archive")
def test_the_last_restore_point_of_a_cluster_is_published(probe, settings):
    def published() -> float:
        samples = {name: value for name, value, _ in read_backups().samples}
        return samples["restore_point_timestamp_seconds"]

    settings.IS_DISTRIBUTED = True
    # None was made, which the alert has to tell.
    assert published() == 0
    run_of("point", days=2)
    last = run_of("point", days=1)
    run_of("backup", days=0)
    assert published() == pytest.approx(last.ended_at.timestamp())


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor == "postgresql", reason="has an archive")
def test_sqlite_has_no_archive():
    assert read_backups() == NOT_SET_UP


@pytest.mark.django_db
def test_engineers_see_age_and_verdict_and_change_nothing(client):
    run_of("drill", days=3, ok=False)
    engineer = User.objects.create_superuser("e@example.org", "calm-harbour-42")
    page = log_in(client, engineer).get("/engineers/survey/backuprun/")
    text = page.content.decode().replace("\xa0", " ")
    assert "3 days ago" in text
    assert 'alt="False"' in text
    assert client.get("/engineers/survey/backuprun/add/").status_code == 403
