from __future__ import annotations

from django.db import models

from accounts.tables import Table


class BackupRun(Table):
    """A backup, or a drill that restored one; written by the database's hosts."""

    class Kind(models.TextChoices):
        BACKUP = "backup"
        DRILL = "drill", "restore drill"

    kind = models.CharField(max_length=6, choices=Kind)
    ok = models.BooleanField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    # What the command printed: label, bytes, seconds, or the error.
    details = models.JSONField()

    class Meta:
        ordering = ("-ended_at",)

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.ended_at:%Y-%m-%d %H:%M}"
