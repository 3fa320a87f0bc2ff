"""Lists of schools that administrators upload for the public directory."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class SchoolImport(models.Model):
    """An uploaded list of schools: checked, then confirmed and applied.

    `report` is that of `survey.schools.importing.SchoolReport`.
    """

    class State(models.TextChoices):
        CHECKING = "checking", "Checking"
        CHECKED = "checked", "Waiting for confirmation"
        APPLYING = "applying", "Importing"
        APPLIED = "applied", "Imported"
        REFUSED = "refused", "Not imported"
        CANCELLED = "cancelled", "Cancelled"

    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    name = models.CharField(max_length=255)
    # Null once it is over.
    content = models.BinaryField(null=True)
    # Whether schools that are not known here are added.
    create = models.BooleanField(default=False)
    state = models.CharField(max_length=16, choices=State, default=State.CHECKING)
    report = models.JSONField(default=dict)
    # Why the file as a whole was refused.
    message = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created_at", "-pk")

    def __str__(self) -> str:
        return self.name
