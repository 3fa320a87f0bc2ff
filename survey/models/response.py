"""The row that is written on every page turn."""

from __future__ import annotations

from django.db import models


class Response(models.Model):
    """One respondent's answer to one item.

    No surrogate key, no secondary index and no foreign-key constraint: each
    would be paid on every page turn. `survey.taking.storage` refuses unknown
    respondents in its one statement, and unknown items before it. On
    PostgreSQL the table is partitioned by administration.
    """

    class State(models.TextChoices):
        ANSWERED = "a"
        SKIPPED = "s", "seen and left blank"
        HIDDEN = "h", "not applicable on the page"

    pk = models.CompositePrimaryKey("administration_id", "respondent_id", "item_id")
    administration_id = models.BigIntegerField()
    respondent_id = models.BigIntegerField()
    item_id = models.BigIntegerField()
    state = models.CharField(max_length=1, choices=State)
    # One text for every kind; several options are joined by a space.
    # Null where nothing was answered, so that a blank is never a value.
    value = models.TextField(null=True)  # noqa: DJ001
    revision = models.BigIntegerField()
    saved_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state="a", value__isnull=False)
                | models.Q(state__in=("s", "h"), value__isnull=True),
                name="a_value_exactly_where_answered",
            ),
        )

    def __str__(self) -> str:
        return f"{self.respondent_id} on {self.item_id}"
