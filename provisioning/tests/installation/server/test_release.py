"""A release is a copy of one commit that never changes."""

from __future__ import annotations

import shutil
import subprocess
from fnmatch import fnmatch

import pytest

from provisioning.commands import ROOT, Refusal
from provisioning.installation.server import release as module
from provisioning.installation.server.release import (
    copy_release,
    digest_of,
    is_release,
    link_first_release,
    version_of,
)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    root = tmp_path / "checkout"
    for name in ("manage.py", "static/a.css", ".venv/lib/x.py", "a/__pycache__/a.pyc"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "command").write_text("#!/bin/sh")
    (root / "command").chmod(0o700)
    (root / "link").symlink_to("manage.py")
    monkeypatch.setattr(module, "ROOT", root)
    monkeypatch.setattr(module, "RELEASES", tmp_path / "home" / "releases")
    monkeypatch.setattr(module, "CURRENT", tmp_path / "home" / "current")
    return root


def git(root, *arguments):
    settings = ["-c", "user.name=Maya", "-c", "user.email=maya@example.org"]
    subprocess.run(["git", "-C", root, *settings, *arguments], check=True)


def test_a_release_has_the_code_that_all_users_may_read(checkout):
    copied = copy_release("1")
    assert (copied / "manage.py").read_text() == "manage.py"
    assert (copied / "manage.py").stat().st_mode & 0o777 == 0o644
    assert (copied / "command").stat().st_mode & 0o777 == 0o755
    assert copied.stat().st_mode & 0o777 == 0o755
    assert (copied / "link").is_symlink()
    # The caller's packages and compiled files are not those of the release.
    assert not (copied / ".venv").exists()
    assert not (copied / "a/__pycache__").exists()
    assert is_release(copied)
    assert not is_release(checkout)


def test_an_interrupted_copy_is_made_anew(checkout):
    half = module.RELEASES / ".1.new"
    half.mkdir(parents=True)
    (half / "left over").touch()
    copied = copy_release("1")
    assert not (copied / "left over").exists()
    assert not half.exists()


def test_a_release_stays_as_it_is(checkout):
    (copy_release("1") / "manage.py").write_text("serves")
    assert (copy_release("1") / "manage.py").read_text() == "serves"


@pytest.mark.parametrize("name", [".venv", ".help", "static/CACHE", "a/__pycache__"])
def test_what_commands_made_in_a_release_does_not_make_it_another(checkout, name):
    release = copy_release("1", checkout)
    (release / name).mkdir(parents=True, exist_ok=True)
    (release / name / "made").touch()
    source = shutil.copytree(checkout, checkout.with_name("source"))
    assert copy_release("1", source) == release
    (source / "manage.py").write_text("other")
    with pytest.raises(Refusal, match="with other files"):
        copy_release("1", source)


def test_all_that_git_ignores_is_left_out():
    lines = (ROOT / ".gitignore").read_text().split()
    for name in (line.strip("/").rpartition("/")[2] for line in lines):
        assert any(fnmatch(name, pattern) for pattern in module.LEFT_OUT), name


def test_the_first_release_serves_and_the_next_one_waits_for_its_migrations(
    checkout, monkeypatch
):
    for version in ("1", "2"):
        monkeypatch.setattr(module, "ROOT", copy_release(version))
        link_first_release()
        assert module.CURRENT.readlink().name == "1"
        monkeypatch.setattr(module, "ROOT", checkout)


def test_the_version_is_the_commit(checkout):
    git(checkout, "init", "-q")
    (checkout / ".gitignore").write_text(".venv\n__pycache__\n")
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "First", "--date", "2026-11-29T12:00:00Z")
    version = version_of(checkout)
    day, _, commit = version.rpartition("-")
    assert len(day.split("-")) == 3
    assert len(commit) == 10
    (checkout / "manage.py").write_text("changed")
    with pytest.raises(Refusal, match="in no commit"):
        version_of(checkout)


def test_without_git_the_version_is_of_the_files(checkout):
    before = version_of(checkout)
    assert before == digest_of(checkout)
    (checkout / ".venv/lib/x.py").write_text("another package")
    assert version_of(checkout) == before
    (checkout / "manage.py").write_text("changed")
    assert version_of(checkout) != before
