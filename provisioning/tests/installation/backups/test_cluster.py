"""Names of restore points, and which backup a cluster's node is restored from."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from provisioning.commands import Refusal
from provisioning.installation.backups import cluster
from provisioning.installation.backups.cluster import (
    RECORD,
    make_restore_point,
    repositories_of,
    restore_cluster,
    restore_point,
    time_of,
    until_name,
)
from provisioning.installation.backups.repository import Backup
from survey.models import BackupRun

POINT = "2026-11-30T16:15:00Z-db1"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host of the coordinator, with what the role `backup` has written."""
    etc = tmp_path / "etc/backup"
    etc.mkdir(parents=True)
    (etc / "pgbackrest.conf").touch()
    stanzas = ["groundswell", "groundswell-1", "groundswell-2"]
    described = {"stanza": stanzas[0], "stanzas": stanzas, "primary_port": 5432}
    (etc / "backup.json").write_text(json.dumps(described))
    return tmp_path


def test_a_point_tells_when_it_was_made():
    assert time_of(POINT) == datetime(2026, 11, 30, 16, 15, tzinfo=UTC)


@pytest.mark.parametrize("name", ["latest", "2026-11-30T16:15:00", "yesterdayZ-db1"])
def test_what_is_no_point_is_named(name):
    with pytest.raises(Refusal, match=f"{name} is no restore point, such as"):
        time_of(name)


def test_a_node_stops_at_the_point_and_not_at_a_time():
    backup = Backup("20261130-020000F", "full", time_of(POINT), 1, 1, None)
    assert until_name(backup, POINT) == [
        *("--set=20261130-020000F", "--type=name"),
        *(f"--target={POINT}", "--target-action=promote"),
    ]


def answer(monkeypatch, *replies):
    """Let PostgreSQL give these replies; return what it was asked."""
    asked, waiting = [], list(replies)

    def run_sql(statement, **place):
        asked.append(statement)
        return waiting.pop(0)

    monkeypatch.setattr(cluster, "run_sql", run_sql)
    return asked


def test_a_standby_makes_no_point(host, monkeypatch, capsys):
    asked = answer(monkeypatch, [["t"]])
    assert restore_point(host) == 0
    assert len(asked) == 1
    assert "This host is a standby" in capsys.readouterr().out


def test_the_primary_prints_the_points_name(host, monkeypatch, capsys):
    asked = answer(monkeypatch, [["f"]], [["0/1"]], [["3"], ["3"]], [])
    assert restore_point(host) == 0
    name = capsys.readouterr().out.strip()
    assert f"SELECT citus_create_restore_point('{name}')" in asked
    assert abs((datetime.now(UTC) - time_of(name)).total_seconds()) < 3600
    # For the alert about its age.
    assert (
        f"""VALUES ('point', true, now(), now(), '{{"name": "{name}"}}')""" in asked[-1]
    )


def test_a_node_that_does_not_archive_the_point_is_reported(monkeypatch):
    answer(monkeypatch, [["0/1"]], [["2"], ["3"]])
    with pytest.raises(Refusal, match="only 2 of 3 nodes"):
        make_restore_point(Path("/run"))


@pytest.mark.parametrize("act", [restore_point, repositories_of])
def test_one_database_needs_no_points(act, host):
    described = host / "etc/backup/backup.json"
    described.write_text(json.dumps({"stanzas": ["groundswell"], "primary_port": 5432}))
    with pytest.raises(Refusal, match="is no cluster: provisioning/stack restore --at"):
        act(host)


def test_such_a_point_is_not_recorded(host, monkeypatch):
    asked = answer(monkeypatch, [["f"]], [["0/1"]], [["2"], ["3"]])
    with pytest.raises(Refusal, match="only 2 of 3 nodes"):
        restore_point(host)
    assert not any("survey_backuprun" in statement for statement in asked)


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="runs PostgreSQL's SQL")
def test_points_of_the_last_day_are_kept_and_backups_for_ever():
    for kind, hours in (("point", 25), ("point", 23), ("backup", 48)):
        moment = timezone.now() - timedelta(hours=hours)
        BackupRun.objects.create(
            kind=kind, ok=True, started_at=moment, ended_at=moment, details={}
        )
    with connection.cursor() as cursor:
        cursor.execute(RECORD.format(name=POINT))
    runs = [(run.kind, run.details.get("name")) for run in BackupRun.objects.all()]
    assert runs == [("point", POINT), ("point", None), ("backup", None)]


def test_each_node_has_backups_under_a_name_of_its_own(host):
    assert [each.stanza for each in repositories_of(host)] == [
        *("groundswell", "groundswell-1", "groundswell-2")
    ]


def test_nothing_is_restored_over_something(host, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "stack_folder", Path)
    place = tmp_path / "restored"
    place.mkdir()
    (place / "file").touch()
    with pytest.raises(Refusal, match="is not empty"):
        restore_cluster(host, point=POINT, to=place, node=None)


def test_a_node_that_is_none_is_named(host, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "stack_folder", Path)
    with pytest.raises(Refusal, match="There are nodes 0 to 2"):
        restore_cluster(host, point=POINT, to=tmp_path / "new", node=3)
