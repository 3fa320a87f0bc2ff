"""The archive of a release is written where its command is called, with a signature."""

from __future__ import annotations

import subprocess

import pytest

from provisioning.commands import Refusal
from provisioning.release import archive


@pytest.fixture
def publisher(tmp_path, monkeypatch):
    """Make a repository with the tag v1.2.0, and a key to sign with."""
    git = ["git", "-C", tmp_path / "repository", "-c", "user.name=Maya"]
    git += ["-c", "user.email=maya@example.org"]
    (tmp_path / "repository").mkdir()
    for arguments in (
        ["init", "--quiet"],
        ["commit", "--quiet", "--allow-empty", "-m", "A release"],
        ["tag", "v1.2.0"],
    ):
        subprocess.run([*git, *arguments], check=True)
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"]
    subprocess.run(command, check=True)
    monkeypatch.setattr(archive, "ROOT", tmp_path / "repository")
    monkeypatch.setenv("CALLER_FOLDER", str(tmp_path))
    return tmp_path


def call(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["provisioning/run release_archive", *arguments])
    return archive.main()


def test_it_is_written_beside_its_signature(publisher, monkeypatch, capsys):
    assert call(monkeypatch, "v1.2.0", "--key=key") == 0
    written = publisher / "groundswell-1.2.0.tar.gz"
    path, digest = capsys.readouterr().out.splitlines()
    assert path == str(written)
    assert len(digest.removeprefix("SHA-256 ")) == 64
    signature = (publisher / "groundswell-1.2.0.tar.gz.sig").read_text()
    assert signature.startswith("-----BEGIN SSH SIGNATURE-----")


def test_a_missing_key_is_named_as_the_caller_sees_it(publisher, monkeypatch):
    with pytest.raises(Refusal, match=f"There is no key {publisher}/none"):
        call(monkeypatch, "v1.2.0", "--key=none")
