"""Code of others is installed and served only with the digests written down here."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from provisioning.commands import ROOT, Refusal
from provisioning.installation import environment
from provisioning.installation.environment import PRODUCTION, STACK, TESTS, lock_of


def pinned(path: Path) -> dict[str, str]:
    pins = re.findall(r"^([\w.-]+)==([\w.!+-]+)", path.read_text(), re.MULTILINE)
    return {re.sub("[-_.]+", "-", name).lower(): version for name, version in pins}


@pytest.mark.parametrize("requirements", [PRODUCTION, TESTS, STACK])
def test_each_required_package_is_locked_and_no_other(requirements):
    """Run provisioning/lock after changing requirements."""
    required, locked = pinned(requirements), pinned(lock_of(requirements))
    assert required.items() <= locked.items()
    # What the tests' packages share with the product has the product's version.
    assert locked.items() <= (pinned(PRODUCTION) | required).items()


@pytest.mark.parametrize("requirements", [PRODUCTION, TESTS, STACK])
def test_each_locked_package_has_digests(requirements):
    text = lock_of(requirements).read_text()
    packages = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(packages) >= len(pinned(requirements))
    for package in packages:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", package), package
    # Which registry is used is each machine's own matter.
    assert "://" not in text


def test_a_file_with_another_digest_is_not_installed(tmp_path, monkeypatch):
    package = tmp_path / "example-1.0.tar.gz"
    package.write_bytes(b"not what was published")
    requirements = tmp_path / "requirements.txt"
    locked = tmp_path / "locked.txt"
    requirements.write_text(f"example @ {package.as_uri()}\n")
    monkeypatch.setattr(environment, "lock_of", lambda path: locked)
    wrong = " --hash=sha256:" + "0" * 64
    for digest, problem in (("", "Hashes are required"), (wrong, "DO NOT MATCH")):
        locked.write_text(f"example @ {package.as_uri()}{digest}\n")
        with pytest.raises(Refusal, match=problem):
            environment._install([requirements])


def test_scripts_of_others_have_the_digests_of_their_list():
    folder = ROOT / "static" / "vendor"
    listed = dict(
        re.findall(
            r"^\| `([\w.-]+)` .*\| `([0-9a-f]{64})` \|$",
            (folder / "README.md").read_text(),
            re.MULTILINE,
        )
    )
    files = {path.name: path.read_bytes() for path in folder.glob("*.js")}
    assert listed == {name: sha256(data).hexdigest() for name, data in files.items()}
