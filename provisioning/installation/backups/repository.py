"""Make and list pgBackRest's backups of a stack's database."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, output_of

STANZA = "groundswell"
# The server's folder in `etc`, by the kind of host.
PASSWORDS = ("database", "primary", "replica")
# Pages come first: beside them the backup gets what nobody else wants, and lasts
# longer.
LOWEST_PRIORITY = ("nice", "-n", "19", "ionice", "-c", "3")


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup, as pgBackRest lists it."""

    label: str
    type: str
    ended: datetime
    # Of the database, and what this backup added to the repository.
    size: int
    added: int
    # Of the tables, as `records` makes it; None where none was made.
    record: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Repository:
    """The backups and the log of one database, found by pgBackRest's configuration."""

    config: Path
    # Where another host has the repository: what runs a text there, and the
    # configuration there. pgBackRest makes backups on that host alone.
    on_host: tuple[str, str] | None = None
    # pgBackRest's name of the database: each node of a cluster has its own.
    stanza: str = STANZA

    @classmethod
    def of_stack(cls, folder: Path) -> Repository:
        config = folder / "etc" / "backup" / "pgbackrest.conf"
        if not config.exists():
            raise Refusal(
                f"{folder} makes no backups; provisioning/stack up --set"
                " backup_repository= (or s3, host) --set … starts them"
            )
        known = config.with_name("backup.json")
        host = json.loads(known.read_text()) if known.exists() else {}
        return cls(
            config,
            on_host=tuple(host.get("repository_command", ())) or None,
            stanza=host.get("stanza", STANZA),
        )

    @property
    def user(self) -> str | None:
        """Return PostgreSQL's system user, if this process is root."""
        return self.config.owner() if os.geteuid() == 0 else None

    def run(self, *options: str, failing: str) -> str:
        """Run pgBackRest here, as PostgreSQL's user."""
        etc = self.config.parent.parent
        passwords = [etc / name / "pgpass" for name in PASSWORDS]
        passfile = next((str(path) for path in passwords if path.exists()), "")
        return output_of(
            pgbackrest(self.config, *options, stanza=self.stanza),
            failing=failing,
            env={**os.environ, "PGPASSFILE": passfile},
            user=self.user,
        )

    def backups(self) -> list[Backup]:
        """Return all usable backups, the oldest first."""
        printed = self.run(
            "info", "--output=json", failing="The backups can't be listed"
        )
        return [
            Backup(
                label=each["label"],
                type=each["type"],
                ended=datetime.fromtimestamp(each["timestamp"]["stop"], UTC),
                size=each["info"]["size"],
                added=each["info"]["repository"]["delta"],
                record=json.loads(each.get("annotation", {}).get("record", "null")),
            )
            for stanza in json.loads(printed)
            for each in stanza["backup"]
            if not each["error"]
        ]

    def back_up(self, kind: str, *, from_standby: bool) -> Backup:
        """Make a `full` or `incr` backup, and delete those that are too old."""
        options = [f"--type={kind}", *([] if from_standby else ["--no-backup-standby"])]
        failing = "No backup was made"
        if self.on_host is None:
            self.run("backup", *options, failing=failing)
        else:
            runner, config = self.on_host
            command = shlex.join(
                pgbackrest(config, "backup", *options, stanza=self.stanza)
            )
            output_of([*shlex.split(runner), command], failing=failing, cwd=Path("/"))
        return self.backups()[-1]

    def keep_record(self, backup: Backup, record: dict[str, Any]) -> None:
        """Store a backup's record as its annotation, encrypted and deleted with it."""
        self.run(
            "annotate",
            f"--set={backup.label}",
            f"--annotation=record={json.dumps(record, separators=(',', ':'))}",
            failing="The backup's record can't be stored",
        )


def pgbackrest(config: Path | str, *options: str, stanza: str) -> list[str]:
    command = ["pgbackrest", f"--config={config}", f"--stanza={stanza}", *options]
    return [*LOWEST_PRIORITY, *command] if options[0] == "backup" else command
