"""Sentences of free-text answers that a reviewer has released for everyone.

Not distributed where responses are: the table is small, and nothing in it tells who
wrote a sentence.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from accounts.tables import Table

LONGEST_SENTENCE = 500


class ReleasedSentence(Table):
    """A sentence that users who see the results may read."""

    administration = models.ForeignKey(
        "survey.Administration",
        on_delete=models.CASCADE,
        related_name="released_sentences",
    )
    # The name of the question.
    item = models.CharField(max_length=255)
    text = models.CharField(max_length=LONGEST_SENTENCE)
    released_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    released_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("administration", "item", "text"),
                name="one_release_of_a_sentence",
            ),
        )

    def __str__(self) -> str:
        return f"sentence of {self.item} in {self.administration_id}"
