"""A release is taken from those who may sign one, and from nobody else."""

from __future__ import annotations

import hashlib
import subprocess

import pytest

from provisioning.commands import Refusal
from provisioning.installation.server import fetching
from provisioning.installation.server.fetching import fetch_release
from provisioning.release.archive import sign, write_archive

PROJECT = '[project]\nname = "groundswell"\nversion = "{0}"\n'


class Publisher:
    """A repository with its key, and who is trusted."""

    def __init__(self, folder):
        self.folder = folder
        self.repository = folder / "repository"
        self.repository.mkdir()
        self.key, self.stranger = self.make_key("maya"), self.make_key("noor")
        self.git("init", "--quiet")
        self.attempts = 0

    def make_key(self, name):
        path = self.folder / name
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path]
        subprocess.run(command, check=True)
        return path

    def signers(self):
        public = self.key.with_suffix(".pub").read_text()
        return f'maya namespaces="git,groundswell-release" {public}'

    def git(self, *arguments, key=None):
        settings = {
            "user.name": "Maya",
            "user.email": "maya@example.org",
            "gpg.format": "ssh",
            "user.signingKey": str(key or self.key),
        }
        options = [
            text
            for name, value in settings.items()
            for text in ("-c", f"{name}={value}")
        ]
        subprocess.run(["git", "-C", self.repository, *options, *arguments], check=True)

    def release(self, version, *how, key=None, name=""):
        (self.repository / "pyproject.toml").write_text(PROJECT.format(version))
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "-m", version)
        tag = name or f"v{version}"
        self.git("tag", *(how or ("--sign",)), "-m", tag, tag, key=key)

    def archive(self, version, *, key=None):
        path = write_archive(self.repository, f"v{version}", self.folder)
        sign(path, key or self.key)
        return path

    def fetch(self, source="", version="", *, unsigned=False, sha256=""):
        self.attempts += 1
        work = self.folder / f"work{self.attempts}"
        work.mkdir()
        source = str(source or self.repository)
        return fetch_release(source, version, work, unsigned=unsigned, sha256=sha256)


@pytest.fixture
def publisher(tmp_path, monkeypatch):
    publisher = Publisher(tmp_path)
    signers = tmp_path / "allowed_signers"
    signers.write_text(publisher.signers())
    monkeypatch.setattr(fetching, "SIGNERS", (signers, tmp_path / "missing"))
    return publisher


def test_the_newest_signed_tag_is_fetched(publisher):
    publisher.release("1.9.0")
    publisher.release("1.10.0")
    fetched = publisher.fetch()
    assert (fetched.name, fetched.version, fetched.signer) == (
        *("1.10.0", "1.10.0"),
        "maya",
    )
    assert not (fetched.folder / ".git").exists()
    assert publisher.fetch(version="v1.9.0").version == "1.9.0"


@pytest.mark.parametrize("how", [("--annotate",), ("--no-sign", "--annotate")])
def test_an_unsigned_tag_is_refused_unless_told(publisher, how):
    publisher.release("1.1.0", *how)
    with pytest.raises(Refusal, match="has no signature of a key in"):
        publisher.fetch()
    # The twin: what the refusal keeps away.
    taken = publisher.fetch(version="1.1.0", unsigned=True)
    assert (taken.version, taken.signer) == ("1.1.0", "")


def test_a_strangers_signature_is_none(publisher):
    publisher.release("1.1.0", key=publisher.stranger)
    with pytest.raises(Refusal, match="has no signature of a key in"):
        publisher.fetch()


def test_a_lightweight_tag_is_refused(publisher):
    publisher.release("1.0.0")
    publisher.git("tag", "v1.1.0")
    with pytest.raises(Refusal, match="has no signature"):
        publisher.fetch(version="1.1.0")


def test_an_old_signature_under_a_new_name_is_refused(publisher, monkeypatch):
    publisher.release("1.0.0")
    publisher.git("update-ref", "refs/tags/v1.1.0", "refs/tags/v1.0.0")
    with pytest.raises(Refusal, match="was signed under another name"):
        publisher.fetch(version="1.1.0")
    # The twin: git itself takes the signature, and only the version would object.
    real = fetching.run_git

    def renamed(*arguments, source):
        if "cat-file" in arguments:
            return "\ntag v1.1.0\n\n"
        return real(*arguments, source=source)

    monkeypatch.setattr(fetching, "run_git", renamed)
    with pytest.raises(Refusal, match=r"says it is 1\.0\.0, not 1\.1\.0"):
        publisher.fetch(version="1.1.0")


def test_a_missing_tag_and_a_missing_repository_are_named(publisher, tmp_path):
    publisher.release("1.0.0")
    with pytest.raises(Refusal, match="git can't read"):
        publisher.fetch(version="1.7.0")
    with pytest.raises(Refusal, match="git can't read"):
        publisher.fetch(source=tmp_path / "nowhere")
    with pytest.raises(Refusal, match="is no version such as"):
        publisher.fetch(version="main")


def test_a_repository_without_versions_is_refused(publisher):
    publisher.release("1.0.0", name="first")
    with pytest.raises(Refusal, match="has no tag of a version"):
        publisher.fetch()


def test_a_signed_archive_is_fetched(publisher):
    publisher.release("1.1.0")
    archive = publisher.archive("1.1.0")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    fetched = publisher.fetch(archive, sha256=digest.upper())
    assert (fetched.name, fetched.signer) == ("1.1.0", "maya")
    with pytest.raises(Refusal, match="has the SHA-256 digest"):
        publisher.fetch(archive, sha256="0" * 64)
    with pytest.raises(Refusal, match=r"says it is 1\.1\.0, not 1\.2\.0"):
        publisher.fetch(archive, "1.2.0")


def test_a_changed_archive_is_refused_unless_told(publisher):
    publisher.release("1.1.0")
    signature = publisher.archive("1.1.0")
    signature = signature.with_name(f"{signature.name}.sig").read_bytes()
    publisher.git("tag", "--delete", "v1.1.0")
    (publisher.repository / "manage.py").write_text("changed")
    publisher.release("1.1.0")
    archive = publisher.archive("1.1.0")
    archive.with_name(f"{archive.name}.sig").write_bytes(signature)
    with pytest.raises(Refusal, match="has no signature of a key in"):
        publisher.fetch(archive)
    # The twin: what would have been installed.
    fetched = publisher.fetch(archive, unsigned=True)
    assert (fetched.folder / "manage.py").read_text() == "changed"


def test_a_strangers_archive_is_refused(publisher):
    publisher.release("1.1.0")
    with pytest.raises(Refusal, match="has no signature of a key in"):
        publisher.fetch(publisher.archive("1.1.0", key=publisher.stranger))


def test_a_signature_for_another_purpose_is_refused(publisher, monkeypatch):
    publisher.release("1.1.0")
    monkeypatch.setattr("provisioning.release.archive.NAMESPACE", "file")
    with pytest.raises(Refusal, match="has no signature of a key in"):
        publisher.fetch(publisher.archive("1.1.0"))


def test_an_archive_without_its_signature_and_other_addresses_are_named(publisher):
    publisher.release("1.1.0")
    archive = publisher.archive("1.1.0")
    archive.with_name(f"{archive.name}.sig").unlink()
    with pytest.raises(Refusal, match=r"There is no file .*\.sig"):
        publisher.fetch(archive)
    with pytest.raises(Refusal, match="begins with https://"):
        publisher.fetch("http://example.org/groundswell-1.1.0.tar.gz")
    with pytest.raises(Refusal, match="--sha256 is of an archive"):
        publisher.fetch(sha256="0" * 64)


def test_a_folder_is_taken_as_it_is_only_without_a_signature(publisher, tmp_path):
    folder = tmp_path / "unpacked"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PROJECT.format("1.1.0"))
    fetched = publisher.fetch(folder, unsigned=True)
    assert (fetched.folder, fetched.version) == (folder, "1.1.0")
    assert fetched.name.startswith("files-")
    with pytest.raises(Refusal, match="git can't read"):
        publisher.fetch(folder)


@pytest.mark.parametrize("text", ["", "\n# Nobody yet: NAME ssh-ed25519 AAAA\n"])
def test_without_any_key_it_says_where_one_belongs(
    text, publisher, monkeypatch, tmp_path
):
    signers = tmp_path / "owners_signers"
    signers.write_text(text)
    monkeypatch.setattr(fetching, "SIGNERS", (tmp_path / "missing", signers))
    # Before anything is fetched.
    monkeypatch.setattr(fetching, "run_git", None)
    with pytest.raises(
        Refusal, match=f"put the publisher's line into {signers} .*Keys"
    ):
        publisher.fetch()


def test_a_key_that_the_owner_of_the_machine_added_is_enough(publisher, monkeypatch):
    monkeypatch.setattr(
        fetching, "SIGNERS", (publisher.folder / "missing", fetching.SIGNERS[0])
    )
    publisher.release("1.1.0")
    assert publisher.fetch().signer == "maya"
