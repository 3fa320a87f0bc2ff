"""Repeat in a restored database the erasures made after its backup.

The journal of erasures is among the uploaded files, which are backed up apart from the
database. So it is newer than a database that is restored to an earlier time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from provisioning.commands import ROOT, Refusal, caller_path, output_of, step
from provisioning.installation.backups.files import FileRepository

# The folder of `survey.people.certificates.journal`.
JOURNAL = "erasures"


def add_journal_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--journal",
        type=caller_path,
        metavar="FOLDER",
        help="Where files lie in object storage: a copy of their folder `erasures`, by"
        " which people are erased again who were erased after the backup.",
    )


def given_journal(folder: Path | None, *, has_bucket: bool) -> Path | None:
    """Return the folder of entries that the caller has named.

    Raises Refusal where the entries are in object storage and none is named: a restore
    without them would bring erased people back, and say nothing.
    """
    if folder is None and has_bucket:
        raise Refusal(
            "The journal of erasures lies in object storage, with the files. Copy its"
            f" folder `{JOURNAL}` to this host and add --journal FOLDER, also if it is"
            " empty: without it, people who were erased would be there again"
        )
    if folder is not None and not folder.is_dir():
        raise Refusal(f"{folder} is no folder")
    return folder


def collect_journal(place: Path, repository: FileRepository, running: str) -> Path:
    """Bring all entries together: of the last backup of files, and of this host.

    `running` is the folder of files, or "" on a host that has none. Raises Refusal if
    the backup cannot be read: nobody knows who was erased then.
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
    if has_entries(journal):
        environment = {**os.environ, **_environment(home, settings)}
        # The backup may be of an earlier release.
        with step("Bringing its tables up to date"):
            migrate = ("migrate", "--verbosity=0")
            _manage(ROOT, *migrate, run=run, environment=environment)
        replay_by_release(ROOT, run, journal, environment)


def has_entries(journal: Path) -> bool:
    return any(journal.glob("*.json"))


def replay_by_release(
    release: Path, run: Path, journal: Path, environment: Mapping[str, str]
) -> None:
    """Replay erasures by the code of a release that fits the database in `run`."""
    with step("Erasing who was erased after the backup"):
        printed = _manage(
            release,
            "replay_erasures",
            str(journal),
            run=run,
            environment=environment,
        )
    result = json.loads(printed.splitlines()[-1])
    print(f"Erased again: {result['erased']} records, {result['rows']} rows")
    if result["not_the_same"]:
        print(f"See whether these were erased: respondents {result['not_the_same']}")
    # A release before may not know it.
    if rounds := result.get("rounds_not_the_same"):
        print(f"See whether data of these were destroyed: survey rounds {rounds}")


def _manage(
    release: Path, *arguments: str, run: Path, environment: Mapping[str, str]
) -> str:
    """Run manage.py on the database at `run`, as PostgreSQL's superuser.

    New tables are the application's.
    """
    database = {
        "GROUNDSWELL_DATABASE_HOST": str(run),
        "GROUNDSWELL_DATABASE_PORT": "5432",
        "GROUNDSWELL_DATABASE_USER": "postgres",
        "PGOPTIONS": "-c role=groundswell",
        # Not there yet, and empty when they are.
        "GROUNDSWELL_BROKER": "",
        "GROUNDSWELL_MESSAGES_REDIS": "",
    }
    return output_of(
        [release / ".venv" / "bin" / "python", release / "manage.py", *arguments],
        failing=f"manage.py {arguments[0]} failed",
        env={**environment, **database},
    )


def _environment(home: Path, settings: Mapping[str, str]) -> dict[str, str]:
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
        "DJANGO_SETTINGS_MODULE": "settings.stack",
        "GROUNDSWELL_SECRET_KEY": secret("staff_secret_key"),
        "GROUNDSWELL_ACCESS_CODE_KEYS": codes,
        "GROUNDSWELL_CERTIFICATE_KEYS": certificates,
        "GROUNDSWELL_TIME_ZONE": settings.get("time_zone") or "UTC",
        "GROUNDSWELL_FILES": str(home / "files"),
    }
