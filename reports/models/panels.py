"""Projects whose files have the same ID for the same person."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from accounts.tables import Table


def new_panel_key() -> bytes:
    return secrets.token_bytes(32)


class PanelProject(Table):
    """A research project of one user.

    Its key makes panel IDs. They are the same in all files of the project, and have
    nothing in common with those of other projects.
    """

    name = models.CharField(max_length=100)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    key = models.BinaryField(max_length=32, default=new_panel_key)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                "by", Lower("name"), name="one_panel_project_per_name_of_a_user"
            ),
        )

    def __str__(self) -> str:
        return self.name
