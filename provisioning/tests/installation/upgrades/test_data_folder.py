"""Upgrade a small data folder, from the version that is here to the same."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioning.commands import Refusal, output_of, scratch_folder
from provisioning.installation.postgresql import postgresql_programs, postgresql_version
from provisioning.installation.upgrades import host
from provisioning.installation.upgrades.comparison import (
    count_rows,
    differences,
    record_database,
)
from provisioning.installation.upgrades.data_folder import (
    DataUpgrade,
    control_of,
    upgrade_folder,
)

CONTENTS = """
CREATE DATABASE groundswell;
\\connect groundswell
CREATE ROLE reader LOGIN PASSWORD 'secret' CONNECTION LIMIT 3;
ALTER ROLE reader SET work_mem = '3MB';
CREATE TABLE answer (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, value text);
CREATE TABLE name (name text COLLATE "und-x-icu" PRIMARY KEY);
INSERT INTO answer (value) SELECT 'answer ' || n FROM generate_series(1, 100) n;
INSERT INTO name SELECT value FROM answer;
GRANT SELECT ON answer TO reader;
CREATE EXTENSION pg_stat_statements;
UPDATE pg_collation SET collversion = '1.1' WHERE collname = 'und-x-icu';
"""
USER = "postgres" if os.geteuid() == 0 else None


def made_upgrade(place: Path, *, link: bool = False) -> DataUpgrade:
    """Make an old folder with contents, and stop its server."""
    here = postgresql_programs()
    data = place / "data"
    data.mkdir()
    if USER:
        shutil.chown(data, USER, USER)
    upgrade = DataUpgrade(
        old=data / "old",
        new=data / "new",
        work=place / "work",
        old_programs=here,
        new_programs=here,
        user=USER,
        link=link,
    )
    upgrade.prepare()
    output_of(
        [here / "initdb", f"--pgdata={upgrade.old}", "--username=postgres"]
        + ["--data-checksums", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"],
        failing="no folder",
        user=USER,
    )
    with upgrade.server(upgrade.old):
        upgrade.sql(CONTENTS)
    return upgrade


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch_folder() as folder:
        yield folder


@pytest.mark.parametrize("link", [False, True])
def test_the_new_folder_holds_all_that_the_old_one_did(place, link):
    upgrade = made_upgrade(place, link=link)
    figures, before, after = upgrade_folder(upgrade, compares=True, is_copy=not link)
    assert differences(before, after) == []
    assert set(after["table"]) == {"answer", "name"}
    assert count_rows(after) == 200
    # The order of its texts was made by another version of the library.
    assert figures["reindexed"] == ["groundswell name_pkey"]
    assert control_of(upgrade, upgrade.new)["Data page checksum version"] == "1"
    with upgrade.server(upgrade.new):
        # Only what is deleted gets another extension.
        names = upgrade.sql("SELECT extname FROM pg_extension", "groundswell")
        assert (["amcheck"] in names) == (not link)
        statistics = "SELECT count(*) > 0 FROM pg_stats WHERE tablename = 'answer'"
        assert upgrade.sql(statistics, "groundswell") == [["t"]]
        mismatch = (
            "SELECT count(*) FROM pg_collation"
            " WHERE collversion <> pg_collation_actual_version(oid)"
        )
        assert upgrade.sql(mismatch, "groundswell") == [["0"]]


def test_a_copied_folder_still_starts_afterwards(place):
    upgrade = made_upgrade(place)
    upgrade_folder(upgrade, compares=False)
    with upgrade.server(upgrade.old):
        assert upgrade.sql("SELECT count(*) FROM answer", "groundswell") == [["100"]]


def as_if_older(monkeypatch) -> int:
    """Let the version that is here pass for the next one."""
    version = postgresql_version()
    monkeypatch.setattr(host, "postgresql_version", lambda *folders: version - 1)
    return version


@pytest.mark.parametrize("link", [False, True])
def test_the_folder_of_a_host_is_replaced(place, monkeypatch, capsys, link):
    made = made_upgrade(place)
    shutil.rmtree(made.work)
    version = as_if_older(monkeypatch)
    assert host.upgrade_data_folder(made.old, version, link=link, compare=True) == 0
    [printed] = [line for line in capsys.readouterr().out.splitlines() if "{" in line]
    figures = json.loads(printed)
    assert (figures["rows"], figures["differences"]) == (200, [])
    # A linked folder must never start again.
    former = list(made.old.parent.glob("postgresql-*"))
    assert len(former) == (0 if link else 1)
    made.prepare()
    with made.server(made.old):
        assert made.sql("SELECT count(*) FROM answer", "groundswell") == [["100"]]


def test_a_folder_with_a_difference_stays(place, monkeypatch):
    made = made_upgrade(place)
    shutil.rmtree(made.work)
    version = as_if_older(monkeypatch)
    monkeypatch.setattr(
        host, "described", lambda *each: {"differences": ["answer is missing"]}
    )
    with pytest.raises(Refusal, match="stays as it is"):
        host.upgrade_data_folder(made.old, version, link=False, compare=False)
    assert not list(made.old.parent.glob("postgresql-*"))


def test_a_folder_of_this_version_is_refused(tmp_path):
    with pytest.raises(Refusal, match="is no data folder"):
        host.upgrade_data_folder(tmp_path, 17, link=False, compare=False)
    (tmp_path / "PG_VERSION").write_text("17\n")
    with pytest.raises(Refusal, match="PostgreSQL 17 already"):
        host.upgrade_data_folder(tmp_path, 17, link=False, compare=False)


def test_a_server_that_was_killed_is_refused(place):
    upgrade = made_upgrade(place)
    with upgrade.server(upgrade.old):
        pid = int((upgrade.old / "postmaster.pid").read_text().split()[0])
        os.kill(pid, 9)
    with pytest.raises(Refusal, match="was not stopped in order"):
        upgrade_folder(upgrade, compares=False)
    assert not upgrade.new.exists()


CHANGES = {
    "DELETE FROM answer WHERE id = 7": "answer has 99 rows instead of 100",
    "UPDATE answer SET value = 'x' WHERE id = 7": "answer has other content",
    "SELECT nextval('answer_id_seq')": "sequence answer_id_seq is 101",
    "REVOKE SELECT ON answer FROM reader": "grant SELECT on answer to reader is",
    "GRANT UPDATE ON answer TO reader": "grant UPDATE on answer to reader was",
    "GRANT CONNECT ON DATABASE groundswell TO reader": "grant CONNECT on database",
    "ALTER ROLE reader PASSWORD 'other'": "role reader is",
    "ALTER ROLE reader SET work_mem = '4MB'": "role reader is",
    "GRANT pg_monitor TO reader": "membership pg_monitor of reader was not there",
    "DROP EXTENSION pg_stat_statements": "extension pg_stat_statements is missing",
    "DROP TABLE name": "name is missing",
    "ALTER TABLE answer OWNER TO reader": "owner answer is reader",
    "CREATE INDEX ON answer (value)": "index answer_value_idx was not there",
    "ALTER TABLE answer ADD CHECK (id > 0)": "constraint answer answer_id_check",
}


def test_every_difference_is_noticed(place):
    upgrade = made_upgrade(place)
    with upgrade.server(upgrade.old):
        before = record_database(upgrade.work)
        for statement, sentence in CHANGES.items():
            # Undone by a copy of the database, which is quicker than a new one.
            upgrade.sql("CREATE DATABASE kept TEMPLATE groundswell")
            roles = upgrade.sql(
                "SELECT rolpassword FROM pg_authid WHERE rolname='reader'"
            )
            upgrade.sql(statement, "groundswell")
            sentences = differences(before, record_database(upgrade.work))
            assert any(each.startswith(sentence) for each in sentences), statement
            upgrade.sql(
                "DROP DATABASE groundswell; ALTER DATABASE kept RENAME TO groundswell;"
                f"ALTER ROLE reader PASSWORD '{roles[0][0]}';"
                "ALTER ROLE reader SET work_mem = '3MB';"
                "REVOKE pg_monitor FROM reader;"
            )
        assert differences(before, record_database(upgrade.work)) == []
