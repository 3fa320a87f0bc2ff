"""What colleagues say about the questions of a draft."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.tables import Table
from survey.models.instrument import Survey

LONGEST_COMMENT = 2_000


class DraftComment(Table):
    """A comment, or a reply to one, at a row of a draft's survey sheet.

    `key` is that of the row, or "" for the survey as a whole.
    """

    survey = models.ForeignKey(
        Survey, on_delete=models.CASCADE, related_name="comments"
    )
    key = models.CharField(max_length=16, blank=True)
    text = models.CharField(max_length=LONGEST_COMMENT)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)
    replies_to = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, related_name="replies"
    )
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
    )

    objects = models.Manager()

    class Meta:
        ordering = ("at", "pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(replies_to=None) | Q(resolved_at=None),
                name="only_a_first_comment_is_resolved",
            ),
        )

    def __str__(self) -> str:
        return self.text[:40]
