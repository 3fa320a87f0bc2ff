"""The people whom a checked roster would withdraw."""

from __future__ import annotations

from django.db import models

from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Respondent
from survey.models.roster import RosterUpload


class RosterMissing(
    Table,
    reason="keyed by upload; deleted once applied",
    erasing=Erasing.DELETED,
    respondent=Reference.STAYS,
):
    """A person to withdraw; deleted when the upload is applied or cancelled."""

    # Also finds all people of an upload.
    pk = models.CompositePrimaryKey("upload_id", "respondent_id")
    # Without constraints: millions of rows are inserted at once, and a deleted
    # person or upload is simply not found any more.
    upload = models.ForeignKey(
        RosterUpload,
        on_delete=models.CASCADE,
        related_name="missing",
        db_constraint=False,
        db_index=False,
    )
    respondent = models.ForeignKey(
        Respondent,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    # The file says that they have left; others are not in it.
    has_left = models.BooleanField()

    def __str__(self) -> str:
        return f"respondent {self.respondent_id}: upload {self.upload_id}"
