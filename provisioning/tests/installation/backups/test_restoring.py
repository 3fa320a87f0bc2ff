"""Back up a small database, lose a table, and restore it to the second before."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from provisioning.commands import Refusal, output_of, scratch_folder, wait_until
from provisioning.installation.backups.drill import COPY_ROWS
from provisioning.installation.backups.records import (
    SWITCH_LOG,
    archive_log,
    count_tables,
    differences,
    record_replica,
)
from provisioning.installation.backups.repository import Backup, Repository
from provisioning.installation.backups.restoring import (
    backup_before,
    parse_time,
    restored_database,
    until_point,
    until_time,
)
from provisioning.installation.environment import ROLES
from provisioning.installation.postgresql import run_sql
from provisioning.installation.servers import private_servers
from settings.tests.patience import patience

NOON = datetime(2025, 11, 24, 12, tzinfo=UTC)


@dataclass
class Loss:
    """Servers with a backup, that lost a table some seconds later."""

    run: Path
    repository: Repository
    before: datetime
    after: datetime
    record: dict[str, Any]


@pytest.fixture(scope="module")
def loss() -> Iterator[Loss]:
    # On another host: what is tried here besides is that host's part. Its pgBackRest
    # has the repository as a folder, as that of a single machine does.
    with private_servers(in_memory=True, backs_up=True, to_host=True) as run:
        repository = Repository.of_stack(run)
        run_sql("CREATE TABLE answers AS SELECT generate_series(1, 1000) n", run=run)
        backup = repository.back_up("full", from_standby=True)
        run_sql("UPDATE answers SET n = -n WHERE n > 900", run=run)
        archive_log(run=run)
        record = record_replica(run, 5433)
        repository.keep_record(backup, record)
        time.sleep(1.1)
        before = datetime.now(UTC).replace(microsecond=0)
        time.sleep(0.1)
        run_sql("DROP TABLE answers; CREATE TABLE other ()", run=run)
        after = datetime.now(UTC)
        archive_log(run=run)
        yield Loss(run, repository, before, after, record)


def restored_at(loss: Loss, until: list[str]) -> dict[str, list[str]]:
    with (
        scratch_folder() as folder,
        restored_database(loss.repository, folder, until) as run,
    ):
        return count_tables(run)


def test_a_dropped_table_comes_back_as_it_was(loss):
    """Also what was written after the backup; then its rows are copied back."""
    [backup] = loss.repository.backups()
    assert backup.record == loss.record
    assert loss.record["tables"]["answers"][0] == "1000"
    with (
        scratch_folder() as folder,
        restored_database(
            loss.repository, folder, until_time(backup, loss.before)
        ) as restored,
    ):
        assert differences(loss.record["tables"], count_tables(restored)) == []
        dump = f"pg_dump -h {restored} -U postgres --section=pre-data -t answers"
        make = f"{dump} groundswell | psql -h {loss.run} -U postgres groundswell"
        output_of(["sh", "-c", make], failing="The table can't be made again")
        copy = [COPY_ROWS, restored, loss.run, "answers"]
        output_of(copy, failing="The rows can't be copied")
        with pytest.raises(Refusal):
            # All rows or none: the first of them could be converted.
            run_sql("CREATE TABLE half (n int CHECK (n > 0))", run=loss.run)
            run_sql("ALTER TABLE answers RENAME TO half", run=restored)
            output_of([*copy[:3], "half"], failing="The rows can't be copied")
    tables = count_tables(loss.run)
    assert tables["answers"] == loss.record["tables"]["answers"]
    assert tables["half"][0] == "0"


def test_a_restore_to_after_the_loss_is_found_unequal(loss):
    """The twin: the comparison objects to what it should object to."""
    [backup] = loss.repository.backups()
    tables = restored_at(loss, until_time(backup, loss.after))
    assert differences(loss.record["tables"], tables) == [
        "answers is missing",
        "other was not there",
    ]


def test_the_point_of_a_record_is_exact(loss):
    [backup] = loss.repository.backups()
    tables = restored_at(loss, until_point(backup, loss.record["lsn"]))
    assert tables == loss.record["tables"]


def test_the_replica_goes_on_after_a_record(loss):
    asked = "SELECT pg_get_wal_replay_pause_state()"
    assert run_sql(asked, run=loss.run, port=5433) == [["not paused"]]


def test_only_the_host_with_the_repository_makes_backups(loss):
    """Why the command runs there: pgBackRest refuses it on a database host.

    Until 2.55, which is that of Debian 13.
    """
    printed = output_of(["pgbackrest", "version"], failing="pgBackRest is missing")
    if [*map(int, printed.split()[1].split("."))] >= [2, 55]:
        pytest.skip("this version makes them on any host")
    with pytest.raises(Refusal, match="must be run on the repository host"):
        loss.repository.run("backup", failing="No backup was made")


@pytest.mark.parametrize(
    ("authority", "name", "why"),
    [
        ("secrets/backup_certificates", "another-name", "access denied"),
        ("another", "groundswell-backup", "unknown ca"),
    ],
)
def test_a_host_without_the_right_certificate_reads_nothing(loss, authority, name, why):
    make = [
        ROLES / "common/files/make_certificates.sh",
        *[loss.run / authority] * 2,
        name,
        "730",
    ]
    output_of(["sh", *make, name], failing="No certificate is made")
    options = []
    for option, kind in (("cert", "pem"), ("key", "key")):
        file = loss.run / f"{name}.{kind}"
        shutil.copy(loss.run / authority / file.name, file)
        shutil.chown(file, loss.repository.user or os.geteuid())
        options.append(f"--repo1-host-{option}-file={file}")
    with pytest.raises(Refusal, match=why):
        loss.repository.run("repo-ls", *options, failing="It can't be read")
    # The twin: with its own one it does.
    assert "archive" in loss.repository.run("repo-ls", failing="It can't be read")


@pytest.fixture
def away(loss: Loss) -> Iterator[None]:
    """The repository can't be written, and at most one file of the log may wait."""
    archive = loss.run / "host/database/archive/groundswell"
    config = loss.repository.config
    known, mode = config.read_text(), archive.stat().st_mode
    owner = archive.stat().st_uid
    config.write_text(known.replace("queue-max = 8GB", "queue-max = 20MB"))
    archive.chmod(0)
    os.chown(archive, 0 if os.geteuid() == 0 else owner, -1)
    yield
    os.chown(archive, owner, -1)
    archive.chmod(mode)
    config.write_text(known)


def archiver(loss: Loss) -> tuple[int, int]:
    """Return how many files of the log are done with, and how often that failed."""
    [[done, failed]] = run_sql(
        "SELECT archived_count, failed_count FROM pg_stat_archiver", run=loss.run
    )
    return int(done), int(failed)


def test_a_repository_that_is_away_drops_log_instead_of_filling_the_disk(loss, away):
    done, failed = archiver(loss)
    run_sql(SWITCH_LOG, run=loss.run)
    # It waits and is tried again, and saving goes on.
    assert wait_until(lambda: archiver(loss)[1] > failed, seconds=patience(30))
    assert archiver(loss)[0] == done
    run_sql("CREATE TABLE written AS SELECT 1", run=loss.run)
    run_sql(SWITCH_LOG, run=loss.run)
    assert wait_until(lambda: archiver(loss)[0] >= done + 2, seconds=patience(60))
    assert count_tables(loss.run)["written"][0] == "1"


def made(ended: datetime) -> Backup:
    return Backup("20261124-120000F", "full", ended, 1, 1, None)


def test_the_last_backup_before_a_time_is_used():
    first, second = made(NOON), made(NOON + timedelta(days=1))
    assert backup_before([first, second], NOON + timedelta(hours=1)) is first
    assert backup_before([first, second], NOON + timedelta(days=2)) is second


@pytest.mark.parametrize(
    ("backups", "at", "reason"),
    [
        ([], NOON, "no backup yet"),
        ([made(NOON)], NOON, "The first backup ended at 2025-11-24 12:00:00 UTC"),
        ([made(NOON)], datetime.max.replace(tzinfo=UTC), "is in the future"),
    ],
)
def test_times_without_a_backup_are_refused(backups, at, reason):
    with pytest.raises(Refusal, match=reason):
        backup_before(backups, at)


def test_times_are_utc_unless_they_say_otherwise():
    assert parse_time("2025-11-24T12:00") == NOON
    assert parse_time("2025-11-24 06:00:00-06:00") == NOON
    with pytest.raises(Refusal, match="not a time such as"):
        parse_time("yesterday")


def test_each_difference_between_tables_is_named():
    before = {"a": ["1", "5"], "b": ["1", "5"], "c": ["1", "5"], "d": ["1", "5"]}
    after = {"a": ["1", "5"], "b": ["2", "5"], "c": ["1", "6"], "e": ["0", "0"]}
    assert differences(before, after) == [
        "b has 2 rows instead of 1",
        "c has other content",
        "d is missing",
        "e was not there",
    ]
