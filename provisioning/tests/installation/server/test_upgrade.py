"""The order of an upgrade, and what is left when it fails at any step."""

from __future__ import annotations

import argparse
import json
import shutil
from collections import namedtuple
from dataclasses import replace

import pytest

from provisioning.commands import Refusal
from provisioning.installation.server import install, progress, upgrade
from provisioning.installation.server.progress import Upgrade
from provisioning.tests.installation.server.test_fetching import PROJECT

OLD_MIGRATIONS = {"survey.0001_tables": "1.0.0"}
EXPANDED = OLD_MIGRATIONS | {"survey.0002_expand": "1.0.0"}
BROKEN = OLD_MIGRATIONS | {"survey.0002_break": "1.1.0"}


class Server:
    """What an upgrade does to a server, step by step."""

    def __init__(self, home, monkeypatch):
        self.home = home
        self.steps = []
        self.failing = ""
        self.migrations = EXPANDED
        self.applied = {*OLD_MIGRATIONS}
        for name, version in (("one", "1.0.0"), ("two", "1.1.0")):
            folder = home / "releases" / name
            folder.mkdir(parents=True)
            (folder / "pyproject.toml").write_text(PROJECT.format(version))
        (home / "current").symlink_to(home / "releases/one")
        for module in (upgrade, progress):
            monkeypatch.setattr(module, "UPGRADE", home / "upgrade.json")
            monkeypatch.setattr(module, "BEFORE", home / "release_before.json")
        monkeypatch.setattr(upgrade, "RELEASES", home / "releases")
        monkeypatch.setattr(upgrade, "CURRENT", home / "current")
        monkeypatch.setattr(upgrade, "ROOT", home / "releases/one")
        monkeypatch.setattr(upgrade, "migrations_of", lambda release: self.migrations)
        monkeypatch.setattr(upgrade, "applied_migrations", lambda: {*self.applied})
        monkeypatch.setattr(upgrade, "back_up", lambda old: self.do("backup"))
        monkeypatch.setattr(upgrade, "call", lambda new, only: self.do(only))
        monkeypatch.setattr(upgrade, "check", lambda new: self.do("check"))
        monkeypatch.setattr(upgrade, "stop_programs", lambda: self.do("close"))
        monkeypatch.setattr(upgrade, "Supervisor", lambda home: self)

    def do(self, name):
        self.steps.append(name)
        if name == self.failing:
            raise Refusal(f"{name} fails")

    # As the supervisor

    def programs(self):
        return [{"group": "taking", "name": "taking_0", "statename": "STOPPED"}]

    @property
    def calls(self):
        return argparse.Namespace(startProcess=lambda name, wait: self.do("reopen"))

    def finish(self, *, close_site=False):
        state = progress.read(upgrade.UPGRADE)
        upgrade.finish(state or Upgrade("one", "two"), close_site=close_site)


@pytest.fixture
def server(tmp_path, monkeypatch):
    return Server(tmp_path, monkeypatch)


def test_it_backs_up_then_migrates_then_checks_and_keeps_the_way_back(server):
    server.finish()
    assert server.steps == ["backup", "apply", "check"]
    before = progress.read(upgrade.BEFORE)
    assert (before.old, before.new, before.too_new) == ("one", "two", [])
    assert before.migrates_at
    assert progress.read(upgrade.UPGRADE) is None
    assert (server.home / "releases/one").exists()


def test_without_a_backup_nothing_is_migrated(server):
    server.failing = "backup"
    with pytest.raises(Refusal, match="backup fails"):
        server.finish()
    assert server.steps == ["backup"]
    assert progress.read(upgrade.UPGRADE) is None


def test_an_interrupted_one_goes_on_without_another_backup(server):
    server.failing = "apply"
    with pytest.raises(Refusal):
        server.finish()
    assert progress.read(upgrade.BEFORE) is None
    server.failing, server.steps = "", []
    server.finish()
    # The way back is to the moment before the first migration.
    assert server.steps == ["apply", "check"]


def test_migrations_that_old_code_does_not_bear_need_a_closed_site(server):
    server.migrations = BROKEN
    with pytest.raises(Refusal, match="--close-site"):
        server.finish()
    assert server.steps == []
    server.finish(close_site=True)
    assert server.steps == ["backup", "close", "apply", "check"]
    assert progress.read(upgrade.BEFORE).too_new == ["survey.0002_break"]


def test_a_site_is_not_closed_for_migrations_that_old_code_bears(server):
    server.finish(close_site=True)
    assert "close" not in server.steps


def test_a_closed_site_opens_again_if_nothing_was_migrated(server):
    server.migrations, server.failing = BROKEN, "apply"
    with pytest.raises(Refusal):
        server.finish(close_site=True)
    assert server.steps == ["backup", "close", "apply", "reopen"]


def test_it_stays_closed_where_old_code_would_meet_new_tables(server):
    server.migrations, server.failing = BROKEN, "apply"
    server.applied |= set(BROKEN)
    state = Upgrade(
        "one", "two", "2026-11-30", closes=True, too_new=["survey.0002_break"]
    )
    progress.keep(upgrade.UPGRADE, state)
    with pytest.raises(Refusal):
        server.finish()
    assert server.steps == ["close", "apply"]


def test_releases_before_the_last_one_are_deleted(server):
    shutil.copytree(server.home / "releases/one", server.home / "releases/zero")
    server.finish()
    names = {path.name for path in (server.home / "releases").iterdir()}
    assert names == {"one", "two"}


def options(*arguments):
    return upgrade.parser().parse_args(arguments)


def test_a_survey_day_is_no_time_for_it_unless_told(server, monkeypatch):
    reasons = json.dumps(["people answer spring now"])
    monkeypatch.setattr(upgrade, "output_of", lambda *_, **__: reasons)
    monkeypatch.setattr(upgrade, "refuse_without_room", lambda: server.do("room"))
    with pytest.raises(Refusal, match="people answer spring now"):
        upgrade.start(options("--from", str(server.home)))
    assert server.steps == []
    # The twin: told to, it goes on to the next check.
    server.failing = "room"
    with pytest.raises(Refusal, match="room fails"):
        upgrade.start(options("--from", str(server.home), "--during-survey"))


def test_a_full_disk_is_noticed_before_anything_is_fetched(server, monkeypatch):
    usage = namedtuple("usage", "total used free")
    for free, refused in ((2**30, True), (2**40, False)):
        monkeypatch.setattr(upgrade, "output_of", lambda *_, **__: f"{2**29}\t.\n")
        monkeypatch.setattr(upgrade, "run_sql", lambda *_, **__: [[str(2**30)]])
        monkeypatch.setattr(
            shutil, "disk_usage", lambda path, free=free: usage(0, 0, free)
        )
        if refused:
            with pytest.raises(Refusal, match=r"1\.0 GB left, .* need 2\.5"):
                upgrade.refuse_without_room()
        else:
            upgrade.refuse_without_room()


@pytest.fixture
def packages(server, monkeypatch):
    """A release with packages, and one that wants the same."""
    old, new = (server.home / "releases" / name for name in ("one", "two"))
    for lock in (old / "lock.txt", new / "lock.txt"):
        lock.write_text("django==5.2")
    monkeypatch.setattr(upgrade, "lock_of", lambda path: old / "lock.txt")
    program = old / ".venv/bin/supervisord"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{old}/.venv/bin/python\n")
    program.chmod(0o755)
    (old / ".venv/pyvenv.cfg").write_text(f"command = venv {old}/.venv")
    (old / ".venv/bin/python").symlink_to("/usr/bin/python3")
    return old, new


def test_the_same_packages_are_copied_and_lead_to_their_own_release(packages):
    old, new = packages
    upgrade.copy_packages(old, new)
    program = new / ".venv/bin/supervisord"
    assert program.read_text() == f"#!{new}/.venv/bin/python\n"
    assert program.stat().st_mode & 0o111
    assert str(old) not in (new / ".venv/pyvenv.cfg").read_text()
    assert (new / ".venv/bin/python").is_symlink()
    assert (old / ".venv/bin/supervisord").read_text().startswith(f"#!{old}")


def test_other_packages_are_installed(packages):
    old, new = packages
    (new / "lock.txt").write_text("django==6.0")
    upgrade.copy_packages(old, new)
    assert not (new / ".venv").exists()


def test_an_interrupted_copy_of_packages_is_made_anew(packages):
    old, new = packages
    (new / ".venv.new").mkdir()
    (new / ".venv.new/left over").touch()
    upgrade.copy_packages(old, new)
    assert not (new / ".venv/left over").exists()


def test_where_releases_come_from(tmp_path, monkeypatch):
    monkeypatch.setattr(upgrade, "SOURCE", tmp_path / "source")
    with pytest.raises(Refusal, match="give --from"):
        upgrade.source_of("")
    (tmp_path / "source").write_text("https://git.example.org/groundswell.git")
    assert upgrade.source_of("") == "https://git.example.org/groundswell.git"
    monkeypatch.setenv("CALLER_FOLDER", str(tmp_path))
    (tmp_path / "next.tar.gz").touch()
    assert upgrade.source_of("next.tar.gz") == str(tmp_path / "next.tar.gz")
    assert upgrade.source_of("https://x.example/y.git") == "https://x.example/y.git"


def test_another_version_waits_for_the_unfinished_one(server):
    unfinished = Upgrade("one", "two", "2026-11-30T00:00:00+00:00")
    assert upgrade.is_of(unfinished, "two")
    assert upgrade.is_of(unfinished, "v1.1.0")
    assert not upgrade.is_of(unfinished, "1.2.0")


def test_two_do_not_run_at_the_same_time(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "HOME", tmp_path)
    with (
        progress.exclusively(),
        pytest.raises(Refusal, match="is under way"),
        progress.exclusively(),
    ):
        pass
    with progress.exclusively():
        pass


def test_an_unreadable_state_is_named(tmp_path):
    (tmp_path / "upgrade.json").write_text("{")
    with pytest.raises(Refusal, match=r"upgrade\.json can't be read"):
        progress.read(tmp_path / "upgrade.json")


def test_the_state_survives_its_file(tmp_path):
    state = replace(Upgrade("one", "two"), too_new=["survey.0002_x"], closes=True)
    progress.keep(tmp_path / "x.json", state)
    assert progress.read(tmp_path / "x.json") == state


def test_install_leaves_other_releases_to_upgrade(tmp_path, monkeypatch):
    served = tmp_path / "2026-11-29-abc"
    monkeypatch.setattr(install, "served_release", lambda: served)
    install.refuse_upgrade("2026-11-29-abc")
    with pytest.raises(Refusal, match="provisioning/upgrade"):
        install.refuse_upgrade("2026-11-30-def")
    # Before the first release serves, a corrected one may take its place.
    monkeypatch.setattr(install, "served_release", lambda: None)
    install.refuse_upgrade("2026-11-30-def")
