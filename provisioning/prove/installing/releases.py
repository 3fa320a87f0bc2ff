"""Releases for the drill that come after this one, signed with a key of its own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from provisioning.commands import ROOT, output_of
from provisioning.release.archive import sign, write_archive

SIGNERS = "provisioning/release/allowed_signers"
# One that takes a moment, in which it can be interrupted.
MIGRATION = """
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("survey", "{before}")]
    oldest_release = "{oldest}"
    operations = [
        migrations.RunSQL("SELECT pg_sleep(2)"),
        migrations.RunSQL(
            "ALTER TABLE survey_administration"
            " ADD COLUMN {name} varchar(8) NOT NULL DEFAULT ''"
        ),
    ]
"""


class Releases:
    """A git repository in the machine, with a tag for each release."""

    def __init__(self, folder: Path, repository: Path) -> None:
        """Make a key in `folder`; `repository` will have the code of a release."""
        self.repository = repository
        self.key = folder / "signing_key"
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)]
        output_of(command, failing="ssh-keygen fails")

    def trust(self, code: Path) -> None:
        """Let this code take releases that the drill's key signs."""
        public = self.key.with_name("signing_key.pub").read_text()
        with (code / SIGNERS).open("a") as file:
            file.write(f'drill namespaces="git,groundswell-release" {public}')

    def git(self, *arguments: str) -> None:
        configured = {
            "user.name": "Drill",
            "user.email": "drill@example.org",
            "gpg.format": "ssh",
            "user.signingKey": str(self.key),
            "safe.directory": "*",
        }
        options = [
            text
            for name, value in configured.items()
            for text in ("-c", f"{name}={value}")
        ]
        output_of(
            ["git", *options, "-C", self.repository, *arguments], failing="git fails"
        )

    def add(self, version: str, *, oldest: str, signed: bool = True) -> None:
        """Commit a release with one migration, and tag it."""
        if not (self.repository / ".git").exists():
            self.git("init", "--quiet")
        project = self.repository / "pyproject.toml"
        text = project.read_text()
        project.write_text(
            re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', text, count=1)
        )
        folder = self.repository / "survey/migrations"
        before = max(path.stem for path in folder.glob("0*.py"))
        name = f"drill_{version.replace('.', '_')}"
        (folder / f"{int(before[:4]) + 1:04}_{name}.py").write_text(
            MIGRATION.format(before=before, oldest=oldest, name=name)
        )
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"Release {version}")
        how = ["--sign"] if signed else ["--annotate"]
        self.git("tag", *how, "--message", version, f"v{version}")

    def archive(self, version: str, folder: Path) -> Path:
        archive = write_archive(self.repository, f"v{version}", folder)
        sign(archive, self.key)
        return archive


def copy_code(target: Path) -> None:
    """Copy the files of this checkout, as a person who has unpacked them."""
    listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    names = output_of(listed, failing="git ls-files fails").split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy)


def next_versions(version: str) -> tuple[str, str]:
    """Return the two minor versions that follow."""
    major, minor, _ = map(int, version.split("."))
    return f"{major}.{minor + 1}.0", f"{major}.{minor + 2}.0"
