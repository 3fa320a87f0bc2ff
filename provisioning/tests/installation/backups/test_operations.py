from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import jinja2
import pytest

from provisioning.commands import Refusal
from provisioning.installation.backups.files import FileRepository
from provisioning.installation.backups.operations import backup, restore
from provisioning.installation.environment import ROLES


def stack_of(folder: Path, **host: object) -> Path:
    etc = folder / "etc" / "backup"
    etc.mkdir(parents=True)
    (etc / "pgbackrest.conf").touch()
    known = {"database": False, "files": "", "keys": "", "environment": {}, **host}
    (etc / "backup.json").write_text(json.dumps(known))
    return folder


def test_a_stack_without_a_repository_is_refused(tmp_path):
    with pytest.raises(Refusal, match="makes no backups"):
        backup(tmp_path, full=False, keys=None)


def test_keys_need_a_passphrase(tmp_path):
    empty = tmp_path / "passphrase"
    empty.write_text("\n")
    home = stack_of(tmp_path / "home", keys="/secrets")
    for path in (empty, tmp_path / "none"):
        with pytest.raises(Refusal, match="has no passphrase in it"):
            backup(home, full=False, keys=path)


def test_keys_of_a_fleet_are_elsewhere(tmp_path):
    home = stack_of(tmp_path / "home")
    with pytest.raises(Refusal, match="on the machine that runs Ansible"):
        backup(home, full=False, keys=Path("passphrase"))


@pytest.mark.parametrize(
    ("file", "reason"),
    [("to/answers", "is not empty"), ("other", "has no backup_passphrase")],
)
def test_a_restore_that_would_overwrite_or_cannot_decrypt_is_refused(
    file, reason, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "provisioning.installation.backups.operations.stack_folder",
        lambda given: Path(given),
    )
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.touch()
    with pytest.raises(Refusal, match=reason):
        restore(tmp_path, at="latest", to=tmp_path / "to", port=9000, settings=())
    assert path.exists()


def test_a_journal_in_object_storage_has_to_be_brought(tmp_path, monkeypatch):
    """Otherwise the stack would open with people who were erased after the backup."""
    monkeypatch.setattr(
        "provisioning.installation.backups.operations.stack_folder",
        lambda given: Path(given),
    )
    home = stack_of(tmp_path / "home")
    (home / "secrets").mkdir()
    (home / "secrets" / "backup_passphrase").touch()

    def restored(*settings: tuple[str, str], journal: Path | None = None) -> None:
        to = tmp_path / "to"
        restore(home, at="latest", to=to, port=9000, settings=settings, journal=journal)

    bucket = ("files_bucket", "s3://key:secret@place/files")
    with pytest.raises(Refusal, match="add --journal FOLDER"):
        restored(bucket)
    with pytest.raises(Refusal, match="is no folder"):
        restored(bucket, journal=tmp_path / "none")
    # A fleet's host knows it from the playbook.
    fleet = stack_of(tmp_path / "fleet", files_bucket=True)
    shutil.copytree(home / "secrets", fleet / "secrets")
    with pytest.raises(Refusal, match="add --journal FOLDER"):
        restore(fleet, at="latest", to=tmp_path / "to", port=9000, settings=())
    # With it, and where files are in a folder, it goes on to the backups.
    for settings, journal in (((bucket,), tmp_path), ((), None)):
        with pytest.raises(Refusal) as refusal:
            restored(*settings, journal=journal)
        assert "journal" not in str(refusal.value)


def test_files_come_back_as_of_a_time_and_only_with_their_passphrase(tmp_path):
    files, place = tmp_path / "files", tmp_path / "place"
    (files / "exports").mkdir(parents=True)
    (files / "incoming").mkdir()
    (files / "incoming" / "half").touch()
    (files / "exports" / "first").write_text("1")
    repository = FileRepository(str(place), {"RESTIC_PASSWORD": "secret"})
    repository.back_up(files, retention_days=1)
    (files / "exports" / "first").unlink()
    (files / "exports" / "second").write_text("2")
    repository.back_up(files, retention_days=1)

    def restored(name: str, at: datetime | None) -> list[str]:
        repository.restore(tmp_path / name, at=at)
        folder = tmp_path / name
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))

    assert restored("now", None) == ["exports", "exports/second"]
    # Before the first backup there may have been what that one has.
    assert restored("then", datetime(2020, 1, 1, tzinfo=UTC)) == [
        "exports",
        "exports/first",
    ]
    stranger = FileRepository(str(place), {"RESTIC_PASSWORD": "guess"})
    with pytest.raises(Refusal, match="has another passphrase"):
        stranger.back_up(files, retention_days=1)
    assert b"exports" not in b"".join(
        path.read_bytes() for path in place.rglob("*") if path.is_file()
    )


def test_a_new_installation_without_files_is_backed_up_and_restored(tmp_path):
    files = tmp_path / "files"
    (files / "incoming").mkdir(parents=True)
    (files / "incoming" / "half").touch()
    repository = FileRepository(str(tmp_path / "place"), {"RESTIC_PASSWORD": "secret"})
    assert repository.back_up(files, retention_days=1) == 0
    assert repository.restore(tmp_path / "now") == 0


@pytest.mark.parametrize(
    ("statuses", "status", "calls"), [("50 50 0", 0, 3), ("0", 0, 1), ("37", 37, 1)]
)
def test_the_repository_is_made_while_the_log_is_archived(
    tmp_path, statuses, status, calls
):
    """pgBackRest ends with 50 while its archiver holds the lock."""
    pgbackrest = tmp_path / "pgbackrest"
    pgbackrest.write_text(
        "#!/bin/sh\necho >>calls\n"
        f"exit $(echo {statuses} | cut -d ' ' -f $(wc -l <calls))\n"
    )
    pgbackrest.chmod(0o755)
    template = (ROLES / "backup" / "templates" / "prepare.j2").read_text()
    script = jinja2.Template(template).render(pgbackrest=pgbackrest)
    script = script.replace("cd /\n", f"cd {tmp_path}\n")
    done = subprocess.run(["/bin/sh", "-c", script], check=False)
    assert done.returncode == status
    assert (tmp_path / "calls").read_text().count("\n") == calls
