from __future__ import annotations

import subprocess

import pytest

from provisioning.measure.benchmarks.meter import processor, revision_of, version_in


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("nginx version: nginx/1.22.1", "1.22.1"),
        ("PgBouncer 1.18.0\nlibevent 2.1.12", "1.18.0"),
        ("version 7", ""),
        ("", ""),
    ],
)
def test_the_first_version_is_found(output, version):
    assert version_in(output) == version


def test_a_changed_checkout_is_marked(tmp_path):
    def git(*words: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        command = ["git", "-C", tmp_path, *identity, *words]
        subprocess.run(command, check=True, capture_output=True)

    git("init")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-m", "First")
    revision = revision_of(tmp_path)
    assert len(revision) >= 7
    (tmp_path / "untracked").touch()
    assert revision_of(tmp_path) == revision
    (tmp_path / "file").write_text("two")
    assert revision_of(tmp_path) == f"{revision}+"


def test_a_folder_outside_of_git_has_no_revision(tmp_path):
    assert revision_of(tmp_path) == ""


def test_the_processor_has_a_name():
    assert processor().strip()
