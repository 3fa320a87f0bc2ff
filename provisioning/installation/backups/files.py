"""Back up uploaded files and keys with restic, each with a passphrase of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from provisioning.commands import Refusal, output_of
from provisioning.installation.backups.repository import LOWEST_PRIORITY

# Files that are being uploaded.
INCOMING = "incoming"


@dataclass(frozen=True, slots=True)
class FileRepository:
    """restic's repository of one folder."""

    location: str
    # Of restic and the place: RESTIC_PASSWORD or RESTIC_PASSWORD_FILE.
    environment: Mapping[str, str]

    def run(self, *arguments: str, failing: str, cwd: Path = Path("/")) -> str:
        return output_of(
            [*LOWEST_PRIORITY, "restic", "--no-cache", "--json", *arguments],
            failing=failing,
            env={
                **os.environ,
                **self.environment,
                "RESTIC_REPOSITORY": self.location,
                "TZ": "UTC",
            },
            cwd=cwd,
        )

    def back_up(self, folder: Path, *, retention_days: int) -> int:
        """Back up what has changed; return the bytes added."""
        try:
            self.run("cat", "config", failing="")
        except Refusal as refusal:
            if "wrong password" in str(refusal):
                raise Refusal(
                    f"{self.location} has another passphrase; give that one"
                ) from None
            self.run("init", failing=f"{self.location} can't be made")
        # On a new installation; restic refuses to back up nothing.
        if not any(path.name != INCOMING for path in folder.iterdir()):
            return 0
        # By relative names, so that they can be restored into another folder.
        printed = self.run(
            *("backup", ".", "--host=groundswell", f"--exclude={folder}/{INCOMING}"),
            failing=f"{folder} can't be backed up",
            cwd=folder,
        )
        self.run(
            *("forget", f"--keep-within={retention_days}d", "--group-by=host"),
            "--prune",
            failing="Old backups of files can't be deleted",
        )
        return int(json.loads(printed.splitlines()[-1])["data_added"])

    def restore(self, folder: Path, *, at: datetime | None = None) -> int:
        """Restore the files as of a time; return how many backups had a part.

        The last backup before it, and what the first one after it has in addition:
        names are never used twice, so nothing is overwritten.
        """
        printed = self.run("snapshots", failing=f"{self.location} can't be read")
        snapshots = [
            (datetime.fromisoformat(each["time"][:19] + "+00:00"), each["short_id"])
            for each in json.loads(printed) or ()
        ]
        snapshots.sort()
        before = [name for time, name in snapshots if at is None or time <= at][-1:]
        after = [name for time, name in snapshots if at and time > at][:1]
        for name in (*after, *before):
            self.run(
                *("restore", name, f"--target={folder}"),
                failing=f"The files of {name} can't be restored",
            )
        return len(before) + len(after)

    def restore_newest(self, folder: Path, part: str) -> None:
        """Restore one folder of the last backup, if there is a backup that has it."""
        printed = self.run("snapshots", failing=f"{self.location} can't be read")
        if not json.loads(printed):
            return
        self.run(
            *("restore", "latest", f"--target={folder}", f"--include=/{part}"),
            failing=f"The last {part} can't be restored",
        )
