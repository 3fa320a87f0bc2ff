from __future__ import annotations

from django.db import models

from accounts.tables import Table


class BackupRun(Table):
    """A backup, a drill that restored one, or a restore point of a cluster.

    Written by the database's hosts.
    """

    class Kind(models.TextChoices):
        BACKUP = "backup"
        DRILL = "drill", "restore drill"
        # Of the last day only: a cluster makes one every quarter of an hour.
        POINT = "point", "restore point"

    kind = models.CharField(max_length=6, choices=Kind)
    ok = models.BooleanField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    # What the command printed: label, bytes, seconds, name, or the error.
    details = models.JSONField()

    class Meta:
        ordering = ("-ended_at",)

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.ended_at:%Y-%m-%d %H:%M}"
