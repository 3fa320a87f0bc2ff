"""Say on which systems data were destroyed, and when the last backup of them ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from survey.fieldwork.message_platforms.store import ALIAS
from survey.models import BackupRun, DestructionCertificate

# A full backup is deleted once a later one is as old as `backup_retention_days`. The
# schedule makes the later one within a week; a day for when it runs.
UNTIL_NEXT_FULL = timedelta(days=8)
# Backups that are looked at: a year of daily ones. Where they are kept for longer,
# entries of the journal stay.
RECENT = 400


def systems(kind: str) -> list[dict[str, str]]:
    """Return the stores of this installation, each with what happened there.

    Without those that never have data of this kind: no answer is in an e-mail, or in
    what message platforms read.
    """
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
    if kind != DestructionCertificate.Kind.ANSWERS:
        if ALIAS in settings.CACHES:
            rows.append({"system": "messages Redis", "effect": "deleted"})
        rows.append({"system": "mail queue", "effect": "empties"})
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


def backups_begin() -> datetime | None:
    """Return when the oldest full backup began that may still be there.

    It is the newest that was as old as backups are kept when the last backup ended:
    then the ones before it were deleted. None where no backup says enough. On a cluster
    it is the oldest of all nodes. 1 statement.
    """
    backups = BackupRun.objects.filter(kind=BackupRun.Kind.BACKUP, ok=True)
    of_nodes: defaultdict[str, list[BackupRun]] = defaultdict(list)
    for backup in backups.order_by("-ended_at")[:RECENT]:
        of_nodes[backup.details.get("node", "")].append(backup)
    begins = [_begin_of(recent) for recent in of_nodes.values()]
    known = [begin for begin in begins if begin]
    return min(known) if known and len(known) == len(begins) else None


def _begin_of(recent: Sequence[BackupRun]) -> datetime | None:
    """Return it of one server's backups, the newest first."""
    days = [backup.details.get("retention_days") for backup in recent]
    if not all(isinstance(each, int) for each in days):
        return None
    before = recent[0].ended_at - timedelta(days=max(days))
    for backup in recent:
        if backup.details.get("type") == "full" and backup.ended_at < before:
            return backup.started_at
    return None
