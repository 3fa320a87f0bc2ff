"""Lists of schools that administrators upload for the public directory."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy

from accounts.tables import Table


class SchoolImport(Table):
    """An uploaded list of schools: checked, then confirmed and applied.

    `report` is that of `survey.people.schools.importing.SchoolReport`.
    """

    class State(models.TextChoices):
        CHECKING = "checking", gettext_lazy("Checking")
        CHECKED = "checked", gettext_lazy("Waiting for confirmation")
        APPLYING = "applying", gettext_lazy("Importing")
        APPLIED = "applied", gettext_lazy("Imported")
        REFUSED = "refused", gettext_lazy("Not imported")
        CANCELLED = "cancelled", gettext_lazy("Cancelled")

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
