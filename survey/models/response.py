"""Responses: the rows that every saved page writes."""

from __future__ import annotations

from django.db import models

from accounts.tables import Erasing, Table


class Response(
    Table,
    reason="what page saves write",
    key="respondent_id",
    taking="SELECT, INSERT, UPDATE",
    reports="SELECT",
    erasing=Erasing.DELETED,
):
    """One respondent's answer to one item.

    Without a surrogate key, secondary indexes and foreign-key constraints,
    because each would slow down every save. `survey.taking.storage` refuses
    unknown respondents in its one statement, and unknown items before it. On
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
    # Text for every kind of item; several options are joined by spaces. Null
    # unless answered, so that a blank is never a value.
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
