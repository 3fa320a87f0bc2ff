"""A draft as the rows of its workbook, and each change to them.

The rows are those of an XLSForm, cell by cell as written, so that a draft is exported
as it was imported except for what was changed. `survey.instrument.drafts` reads and
changes them.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from accounts.tables import Table
from survey.models.instrument import Survey


class DraftSheet(Table):
    """A sheet of a survey's workbook. Column n has the header `columns[n - 1]`."""

    survey = models.ForeignKey(
        Survey, on_delete=models.CASCADE, related_name="draft_sheets"
    )
    name = models.CharField(max_length=255)
    columns = models.JSONField(default=list)

    objects = models.Manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("survey", "name"), name="one_sheet_per_name_in_a_survey"
            ),
        )

    def __str__(self) -> str:
        return self.name


class DraftRow(Table):
    """A row below the headers of a sheet; `cells` are texts by column number.

    `key` stays the same in copies and later versions of the survey.
    """

    sheet = models.ForeignKey(DraftSheet, on_delete=models.CASCADE, related_name="rows")
    key = models.CharField(max_length=16)
    # With gaps, so that a row is inserted or moved without touching the others.
    position = models.BigIntegerField()
    cells = models.JSONField(default=dict)

    objects = models.Manager()

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(
                fields=("sheet", "key"), name="one_row_per_key_in_a_sheet"
            ),
        )

    def __str__(self) -> str:
        return self.key


class DraftChange(Table):
    """One step in the history of a draft, with all that is needed to undo it.

    `operations` are described in `survey.instrument.drafts.workbook`; `about` names
    what was changed, for people: {"name": "q1", "text": "I feel safe here."}; its
    "token" is that of the request, which is done once.
    """

    survey = models.ForeignKey(Survey, on_delete=models.CASCADE, related_name="changes")
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=32)
    about = models.JSONField(default=dict)
    operations = models.JSONField(default=list)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
    )
    at = models.DateTimeField(auto_now_add=True)
    # The change that an undo or a redo is about.
    undoes = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, related_name="+"
    )
    is_undone = models.BooleanField(default=False)
    # By an undo that met what somebody else has changed.
    is_passed_over = models.BooleanField(default=False, db_default=False)
    # Until the same person changes something else.
    is_redoable = models.BooleanField(default=False)

    objects = models.Manager()

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(
                fields=("survey", "number"), name="one_change_per_number_of_a_draft"
            ),
        )

    def __str__(self) -> str:
        return f"{self.survey_id} {self.number}: {self.action}"
