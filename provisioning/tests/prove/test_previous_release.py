"""The release before runs on this one's schema, and a broken schema is noticed."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext

import pytest

from provisioning.commands import ROOT
from provisioning.prove import previous_release
from provisioning.prove.previous_release import PATHS, release_before

PAGE_SAVES = "survey/tests/taking/test_save_page.py"


def test_there_is_a_release_before():
    kind = ["git", "-C", ROOT, "cat-file", "-t", f"{release_before()}^{{commit}}"]
    done = subprocess.run(kind, capture_output=True, text=True)
    assert done.stdout == "commit\n"


def test_a_migration_that_was_only_edited_is_no_new_one(tmp_path, monkeypatch):
    def git(*words: str) -> str:
        names = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
        command = ["git", "-C", tmp_path, *names, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    monkeypatch.setattr(previous_release, "ROOT", tmp_path)
    migration = tmp_path / "survey/migrations/0002_new.py"
    migration.parent.mkdir(parents=True)
    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message=Before")
    before = git("rev-parse", "HEAD")
    for text in ("new", "edited"):
        migration.write_text(text)
        git("add", "--all")
        git("commit", "--quiet", f"--message={text}")
    assert release_before() == before


def test_the_release_before_runs_with_its_own_packages(tmp_path, monkeypatch):
    servers = tmp_path / "servers"
    servers.mkdir()
    (servers / "migrated-new.sql").touch()
    programs = []

    def record(command, **_options):
        programs.append(command[0].relative_to(tmp_path))
        return subprocess.CompletedProcess(command, 1)

    def output_of(command, **options):
        record(command, **options)
        return str(servers / "migrated-old.sql")

    monkeypatch.setattr(
        previous_release, "private_servers", lambda **_: nullcontext(servers)
    )
    monkeypatch.setattr(previous_release, "output_of", output_of)
    monkeypatch.setattr(subprocess, "run", record)
    new, old = tmp_path / "new", tmp_path / "old"
    assert previous_release.run_on_schema_of(new, old, [PAGE_SAVES]) == 1
    assert [program.parts[0] for program in programs] == ["new", "old", "old"]


@pytest.mark.parametrize(
    ("fails_on_its_own", "missed"), [(True, []), (False, ["test_a.py::test_b fails"])]
)
def test_what_fails_on_its_own_schema_too_does_not_count(
    fails_on_its_own, missed, monkeypatch, capsys
):
    """Otherwise it fails the command, as a test that the new schema breaks does."""
    deselected = []

    def run(new, old, paths, *options):
        is_own = new == old
        failed = not is_own or fails_on_its_own
        cache = old / previous_release.CACHE / "v/cache"
        cache.mkdir(parents=True, exist_ok=True)
        names = {"test_a.py::test_b": True} if failed else {}
        (cache / "lastfailed").write_text(json.dumps(names))
        deselected.extend(options)
        return int(failed)

    def extract(_commit, folder):
        (folder / "test_a.py").parent.mkdir()
        (folder / "test_a.py").touch()

    monkeypatch.setattr(previous_release, "run_on_schema_of", run)
    monkeypatch.setattr(previous_release, "extract", extract)
    monkeypatch.setattr(previous_release, "break_schema", lambda _folder: None)
    monkeypatch.setattr(previous_release, "prepare_environment", lambda *_: None)
    command = ["previous_release", "--release=v1", "--control", "test_a.py"]
    monkeypatch.setattr(sys, "argv", command)
    status = previous_release.main()
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["missed"] == missed
    assert status == bool(missed)
    # In the control, too: there it would be taken for the lost column's.
    assert ("--deselect=test_a.py::test_b" in deselected) == fails_on_its_own


def test_its_tests_are_there():
    assert [path for path in PATHS if not (ROOT / path).exists()] == []


@pytest.mark.alone
@pytest.mark.slow
def test_it_saves_pages_on_this_schema_and_not_on_a_broken_one():
    command = [ROOT / "provisioning/run", "previous_release", "--control", PAGE_SAVES]
    done = subprocess.run(command, capture_output=True, text=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["on_new_schema"] == 0, done.stdout
    assert result["in_control"] == 1, done.stdout
    assert (result["passed"], done.returncode) == (True, 0)
