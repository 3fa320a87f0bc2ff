"""Erase in a restored database who was erased after its backup.

The journal of erasures is among the uploaded files, which are backed up apart from the
database. So it is newer than a database that is restored to an earlier time.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from provisioning.commands import Refusal, step
from provisioning.installation.backups.files import FileRepository
from provisioning.installation.environment import manage

# The folder of `survey.people.certificates.journal`.
JOURNAL = "erasures"


def collect_journal(place: Path, repository: FileRepository, running: str) -> Path:
    """Bring all entries together: of the last backup of files, and of this host.

    `running` is the folder of files, or "" on a host that has none. Raises Refusal if the backup cannot be read: nobody knows who was erased then.
    """
    journal = place / JOURNAL
    journal.mkdir(mode=0o700, parents=True)
    repository.restore_newest(place, JOURNAL)
    if running and (Path(running) / JOURNAL).is_dir():
        try:
            shutil.copytree(Path(running) / JOURNAL, journal, dirs_exist_ok=True)
        except (OSError, shutil.Error) as error:
            raise Refusal(f"The journal of erasures cannot be read: {error}") from None
    return journal


def replay_erasures(
    home: Path, run: Path, journal: Path, settings: Mapping[str, str]
) -> None:
    """Erase people in the database at `run`, before anything else connects to it.

    `settings` are those of `stack up --set`, and `home`/secrets has the keys. Raises
    Refusal, so that the restore ends.
    """
    if not any(journal.glob("*.json")):
        return
    environment = _environment(home, run, settings)
    with step("Erasing who was erased after the backup"):
        # The backup may be of an earlier release.
        manage("migrate", "--verbosity=0", environment=environment)
        printed = manage("replay_erasures", str(journal), environment=environment)
    result = json.loads(printed.splitlines()[-1])
    print(f"Erased again: {result['erased']} records, {result['rows']} rows")
    if result["not_the_same"]:
        print(f"See whether these were erased: respondents {result['not_the_same']}")


def _environment(home: Path, run: Path, settings: Mapping[str, str]) -> dict[str, str]:
    def secret(name: str) -> str:
        try:
            return (home / "secrets" / name).read_text().strip()
        except FileNotFoundError:
            raise Refusal(
                f"{home}/secrets has no {name}, by which erased people are found"
            ) from None

    codes = settings.get("access_code_keys") or f"1={secret('access_code_key')}"
    certificates = settings.get("certificate_keys") or secret("certificate_key")
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings.stack",
        "GROUNDSWELL_SECRET_KEY": secret("staff_secret_key"),
        "GROUNDSWELL_ACCESS_CODE_KEYS": codes,
        "GROUNDSWELL_CERTIFICATE_KEYS": certificates,
        "GROUNDSWELL_TIME_ZONE": settings.get("time_zone") or "UTC",
        "GROUNDSWELL_FILES": str(home / "files"),
        "GROUNDSWELL_DATABASE_HOST": str(run),
        "GROUNDSWELL_DATABASE_PORT": "5432",
        # By its socket, as PostgreSQL's superuser; new tables are the application's.
        "GROUNDSWELL_DATABASE_USER": "postgres",
        "PGOPTIONS": "-c role=groundswell",
        # Not there yet, and empty when they are.
        "GROUNDSWELL_BROKER": "",
        "GROUNDSWELL_MESSAGES_REDIS": "",
    }
