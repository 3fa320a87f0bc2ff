"""The way back: with the database as it is, or by a restore that says what it loses."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.installation.server import progress, rollback
from provisioning.installation.server.progress import Upgrade
from provisioning.tests.installation.server.test_fetching import PROJECT
from provisioning.tests.installation.server.test_upgrade import (
    BROKEN,
    EXPANDED,
    OLD_MIGRATIONS,
)

AT = "2026-11-30T01:00:00+00:00"


class Server:
    def __init__(self, home, monkeypatch):
        self.home = home
        self.steps = []
        self.migrations = EXPANDED
        self.applied = {*EXPANDED}
        for name, version in (("one", "1.0.0"), ("two", "1.1.0")):
            folder = home / "releases" / name
            folder.mkdir(parents=True)
            (folder / "pyproject.toml").write_text(PROJECT.format(version))
        (home / "current").symlink_to(home / "releases/two")
        data = home / "data"
        for name in ("primary", "replica"):
            (data / name).mkdir(parents=True)
            (data / name / "PG_VERSION").write_text("now")
        monkeypatch.setattr(rollback, "UPGRADE", home / "upgrade.json")
        monkeypatch.setattr(rollback, "BEFORE", home / "release_before.json")
        monkeypatch.setattr(rollback, "HOME", home)
        monkeypatch.setattr(rollback, "RELEASES", home / "releases")
        monkeypatch.setattr(rollback, "CURRENT", home / "current")
        monkeypatch.setattr(rollback, "DATA", data)
        monkeypatch.setattr(rollback, "WORK", data / "restoring")
        monkeypatch.setattr(rollback, "migrations_of", self.migrations_of)
        monkeypatch.setattr(rollback, "applied_migrations", lambda: {*self.applied})
        monkeypatch.setattr(rollback, "call", lambda old, only: self.do(only))
        monkeypatch.setattr(rollback, "check", lambda old: self.do("check"))
        monkeypatch.setattr(rollback, "stop_programs", lambda: self.do("close"))
        monkeypatch.setattr(rollback, "stop_program", lambda _, name: self.do(name))
        monkeypatch.setattr(rollback, "restore_beside", self.restore_beside)
        monkeypatch.setattr(rollback, "Supervisor", lambda home: self)

    def migrations_of(self, release):
        return OLD_MIGRATIONS if release.name == "one" else self.migrations

    def do(self, name):
        self.steps.append(name)

    def restore_beside(self, upgrade, old, journal):
        self.do("restore")
        restored = rollback.WORK / "data/primary"
        restored.mkdir(parents=True)
        (restored / "PG_VERSION").write_text("before")

    def programs(self, name):
        return [name] if name != "memcached" else []

    def primary(self):
        return (self.home / "data/primary/PG_VERSION").read_text()

    def go_back(self, upgrade):
        old = self.home / "releases/one"
        restores = bool(upgrade.aside) or rollback.needs_restore(upgrade, old)
        rollback.go_back(upgrade, old, Path(), restores=restores)


@pytest.fixture
def server(tmp_path, monkeypatch):
    return Server(tmp_path, monkeypatch)


@pytest.fixture
def upgrade(server):
    upgrade = Upgrade("one", "two", AT)
    progress.keep(rollback.BEFORE, upgrade)
    return upgrade


def test_the_database_stays_where_each_migration_allows_it(server, upgrade):
    server.go_back(upgrade)
    assert server.steps == ["apply", "check"]
    assert server.primary() == "now"
    assert progress.read(rollback.BEFORE) is None


def test_otherwise_it_is_restored_and_the_newer_data_are_kept(server, upgrade):
    server.migrations, server.applied = BROKEN, {*BROKEN}
    server.go_back(upgrade)
    assert server.steps == [
        *("close", "restore", "backup", "primary", "replica", "apply", "check"),
    ]
    assert server.primary() == "before"
    [aside] = (server.home / "data").glob("primary-before-rollback-*")
    assert (aside / "PG_VERSION").read_text() == "now"
    assert not (server.home / "data/replica").exists()
    assert not rollback.WORK.exists()


def test_replaced_migrations_that_no_code_has_any_more_are_none(server, upgrade):
    server.applied |= {"survey.0001_initial"}
    assert not rollback.needs_restore(upgrade, server.home / "releases/one")


def test_migrations_that_did_not_run_need_no_restore(server, upgrade):
    server.migrations = BROKEN
    server.applied = {*OLD_MIGRATIONS}
    assert not rollback.needs_restore(upgrade, server.home / "releases/one")


@pytest.mark.parametrize("stage", ["restored", "aside", "in place"])
def test_a_restore_goes_on_where_it_was_interrupted(server, upgrade, stage):
    upgrade = Upgrade("one", "two", AT, aside="primary-before-rollback-x")
    data = server.home / "data"
    if stage in ("restored", "aside"):
        server.restore_beside(upgrade, Path(), Path())
        (rollback.WORK / "ready").touch()
    if stage in ("aside", "in place"):
        (data / "primary").rename(data / upgrade.aside)
    if stage == "in place":
        (data / "primary").mkdir()
        (data / "primary/PG_VERSION").write_text("before")
    server.steps = []
    rollback.restore(upgrade, Path(), Path())
    assert "restore" not in server.steps
    assert server.primary() == "before"
    assert (data / upgrade.aside / "PG_VERSION").read_text() == "now"


def test_an_unfinished_copy_is_restored_anew(server, upgrade):
    upgrade = Upgrade("one", "two", AT, aside="primary-before-rollback-x")
    rollback.WORK.mkdir()
    rollback.restore(upgrade, Path(), Path())
    assert "restore" in server.steps


def test_a_journal_in_object_storage_has_to_be_brought(
    server, upgrade, monkeypatch, tmp_path
):
    """Otherwise the database would open with people who were erased."""
    server.migrations, server.applied = BROKEN, {*BROKEN}
    (server.home / "releases/one/provisioning").mkdir(parents=True, exist_ok=True)
    (server.home / "releases/one/provisioning/install").touch()
    seen = []
    monkeypatch.setattr(rollback, "refuse_unless_serving", lambda name: None)
    monkeypatch.setattr(rollback.progress, "exclusively", nullcontext)
    monkeypatch.setattr(rollback, "tell", lambda upgrade, restores: None)
    monkeypatch.setattr(rollback, "go_back", lambda *given, **_: seen.append(given[2]))
    environment = {"GROUNDSWELL_FILES_BUCKET": "s3://key:secret@place/files"}
    monkeypatch.setattr(rollback, "environment_of", lambda *_: environment)
    command = ["rollback", "--yes", "--restore"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(Refusal, match="add --journal FOLDER"):
        rollback.main()
    assert seen == []
    monkeypatch.setattr(sys, "argv", [*command, f"--journal={tmp_path}"])
    rollback.main()
    # Without a bucket, it is among the files.
    environment.clear()
    monkeypatch.setattr(sys, "argv", command)
    rollback.main()
    assert seen == [tmp_path, server.home / "files/erasures"]


def agree(*arguments, restores):
    rollback.agree(rollback.parser().parse_args(arguments), restores=restores)


def test_answers_are_not_lost_without_a_word(monkeypatch):
    agree("--yes", restores=False)
    agree("--yes", "--restore", restores=True)
    with pytest.raises(Refusal, match="add --restore"):
        agree("--yes", restores=True)


@pytest.mark.parametrize("typed", ["", "y", "no"])
def test_it_asks_on_a_terminal(monkeypatch, typed):
    terminal = argparse.Namespace(isatty=lambda: True)
    monkeypatch.setattr(rollback.sys, "stdin", terminal)
    monkeypatch.setattr("builtins.input", lambda question: typed)
    with pytest.raises(Refusal, match="Nothing was changed"):
        agree(restores=True)
    monkeypatch.setattr("builtins.input", lambda question: "yes ")
    agree(restores=True)


def test_nobody_is_asked_without_a_terminal(monkeypatch):
    nobody = argparse.Namespace(isatty=lambda: False)
    monkeypatch.setattr(rollback.sys, "stdin", nobody)
    with pytest.raises(Refusal, match="add --yes"):
        agree(restores=False)


def test_what_would_be_lost_is_counted(server, upgrade, monkeypatch, capsys):
    counts = iter(["1234", "5", "0"])
    queries = []

    def run_sql(query, *, run):
        queries.append(query)
        return [[next(counts)]]

    monkeypatch.setattr(rollback, "run_sql", run_sql)
    rollback.tell(upgrade, restores=True)
    printed = capsys.readouterr().out
    assert "1,234 answers\n" in printed
    assert "5 people who finished\n" in printed
    assert "2026-11-30 01:00:00" in printed
    assert all(f">= '{AT}'" in query for query in queries)
    rollback.tell(upgrade, restores=False)
    assert "nothing is lost" in capsys.readouterr().out
