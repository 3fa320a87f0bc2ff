"""Questions that the state has approved, and the surveys that use them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.functional import cached_property

from accounts.tables import Table
from survey.models.instrument import Survey

LONGEST_CODE = 64


class BankQuestion(Table):
    """One version of a question; a change makes a new version.

    `content` is described in `survey.instrument.bank.content`.
    """

    code = models.CharField(max_length=LONGEST_CODE)
    version = models.PositiveIntegerField()
    content = models.JSONField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
    )
    at = models.DateTimeField(auto_now_add=True)
    # Drafts can't take it from then on. Those that have it keep it.
    retired_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
    )
    retired_at = models.DateTimeField(null=True)

    objects = models.Manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("code", "version"),
                name="one_row_per_version_of_a_bank_question",
            ),
            models.CheckConstraint(
                condition=Q(code__regex=r"^[A-Za-z_][A-Za-z0-9_.-]*$"),
                name="code_of_a_bank_question_is_a_name",
            ),
            models.CheckConstraint(
                condition=Q(version__gte=1),
                name="versions_of_bank_questions_count_from_1",
            ),
            models.CheckConstraint(
                condition=Q(retired_at=None, retired_by=None)
                | Q(retired_at__isnull=False),
                name="who_retired_a_bank_question_says_when",
            ),
        )

    def __str__(self) -> str:
        return self.mark

    @property
    def mark(self) -> str:
        """Return what the column bank_question of a locked question has."""
        return f"{self.code} {self.version}"

    @property
    def name(self) -> str:
        return str(self.content["name"])

    @cached_property
    def text(self) -> str:
        """Return the text in its first language."""
        texts: dict[str, str] = self.content["texts"].get("label", {})
        return next((text for text in texts.values() if text), self.name)

    @property
    def language(self) -> dict[str, str]:
        """Return the language of `text`."""
        first: dict[str, str] = self.content["languages"][0]
        return first


class BankQuestionUse(Table):
    """A survey that has a version of a question, locked."""

    survey = models.ForeignKey(
        Survey, on_delete=models.CASCADE, related_name="bank_uses"
    )
    question = models.ForeignKey(
        BankQuestion, on_delete=models.PROTECT, related_name="uses"
    )

    objects = models.Manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("survey", "question"),
                name="a_survey_has_a_bank_question_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.survey_id}: {self.question_id}"
