"""Research projects whose files have the same ID for the same person."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

from accounts.tables import Erasing, Table


def new_panel_key() -> bytes:
    return secrets.token_bytes(32)


# Its people are who works with the files, and nobody who answered.
class PanelProject(Table, erasing=Erasing.STAYS):
    """A research project: one of a user, or one that the state has approved.

    Its key makes panel IDs. They are the same in all files of the project, and have
    nothing in common with those of other projects. An approved project has an end, at
    which its key is destroyed.
    """

    name = models.CharField(max_length=100)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    key = models.BinaryField(max_length=32, default=new_panel_key, null=True)
    # Of an approved project only.
    purpose = models.CharField(max_length=1000, blank=True, default="", db_default="")
    # Who works in it, in words: most have no account here.
    people = models.CharField(max_length=1000, blank=True, default="", db_default="")
    approval_number = models.CharField(
        max_length=100, blank=True, default="", db_default=""
    )
    # Its last day.
    ends_on = models.DateField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(ended_at=None, key__isnull=False)
                | Q(ended_at__isnull=False, key=None),
                name="a_project_has_a_key_until_it_ends",
            ),
            models.CheckConstraint(
                condition=Q(ends_on=None, ended_at=None)
                | (Q(ends_on__isnull=False) & ~Q(purpose="") & ~Q(people="")),
                name="an_approved_project_has_a_purpose_and_people",
            ),
            models.UniqueConstraint(
                "by", Lower("name"), name="one_panel_project_per_name_of_a_user"
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def is_approved(self) -> bool:
        return self.ends_on is not None

    @property
    def is_over(self) -> bool:
        """Return whether it has ended, or its last day is over."""
        is_late = self.ends_on is not None and self.ends_on < timezone.localdate()
        return self.ended_at is not None or is_late
