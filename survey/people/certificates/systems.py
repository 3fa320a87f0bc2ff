"""Say on which systems data were destroyed, and when the last backup of them ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from survey.models import BackupRun

# A full backup is deleted once a later one is as old as `backup_retention_days`. The
# schedule makes the later one within a week; a day for when it runs.
UNTIL_NEXT_FULL = timedelta(days=8)


def systems() -> list[dict[str, str]]:
    """Return the stores of this installation, each with what happened there."""
    rows = [{"system": "database", "effect": "deleted"}]
    if "replica" in settings.DATABASES:
        rows.append({"system": "replica", "effect": "follows"})
    rows.append(
        {
            "system": "object storage" if settings.FILES_BUCKET else "files",
            "effect": "deleted",
        }
    )
    if not settings.EMBEDDED:
        rows += [
            {"system": "Redis", "effect": "sessions end"},
            {"system": "Memcached", "effect": "holds nobody"},
        ]
    if settings.JOBS_BY_MESSAGE:
        rows.append({"system": "message queue", "effect": "holds nobody"})
    rows.append({"system": "mail queue", "effect": "deleted"})
    return rows


@dataclass(frozen=True, slots=True)
class BackupsEnd:
    """When the last backup ends that holds what was destroyed."""

    retention_days: int | None
    last_backup: datetime | None
    ends: datetime | None

    def described(self) -> dict[str, Any]:
        return {
            "retention_days": self.retention_days,
            "last_backup": self.last_backup and self.last_backup.isoformat(),
            "ends": self.ends and self.ends.isoformat(),
        }


def backups_end(destroyed_at: datetime) -> BackupsEnd:
    """Calculate it from the last backup, which says how long this one is kept.

    Unknown where no backup has said it, as with backups that are made otherwise.
    """
    backups = BackupRun.objects.filter(kind=BackupRun.Kind.BACKUP, ok=True)
    last = backups.order_by("-ended_at").first()
    if last is None:
        return BackupsEnd(None, None, None)
    days = last.details.get("retention_days")
    if not isinstance(days, int):
        return BackupsEnd(None, last.ended_at, None)
    ends = destroyed_at + UNTIL_NEXT_FULL + timedelta(days=days)
    return BackupsEnd(days, last.ended_at, ends)
