"""The groups in which people count whom a roster has changed after the opening."""

from __future__ import annotations

from django.db import models

from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Administration, Respondent


class CountedGroup(
    Table,
    reason="joined with all people",
    key="respondent_id",
    reports="SELECT",
    # A change of figures waits for others, or would tell what the person has done.
    erasing=Erasing.STAYS,
    respondent=Reference.STAYS,
    school=Reference.PEOPLE,
):
    """The groups of a person in response rates and exports without names.

    Rosters store one before they change, withdraw, add or bring back a person
    of an open administration: figures before and after such a change would
    tell whether that person has finished. `reports.rates.counting_groups` lets
    changes count later, many at once. People without a row count as their
    respondent says.
    """

    # Without constraints: adding them would lock the respondents' table, and page
    # saves would wait for the migration.
    respondent = models.OneToOneField(
        Respondent,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="counted",
        db_constraint=False,
    )
    # The index serves the roll-up, which reads the rows of one administration.
    administration = models.ForeignKey(
        Administration, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    # Null: not counted, because they came or left.
    school = models.ForeignKey(
        "accounts.School",
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
    )
    grade = models.CharField(max_length=16, blank=True)
    language = models.CharField(max_length=16, blank=True)
    attributes = models.JSONField(default=dict, blank=True)
    withdrawn_at = models.DateTimeField(null=True)
    # People whose groups changed at once have the same number; 0 is the opening.
    cohort = models.PositiveIntegerField(default=0)
    # When a roster changed this person last.
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"groups of respondent {self.respondent_id}"
