"""Files with all that is stored about a person, for the person or a parent."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from accounts.tables import Erasing, Reference
from survey.models.administration import Respondent
from survey.models.opt_out import OptOut
from survey.models.requested_file import COMPLETE_OR_NONE, AuditPlace, ChecksummedFile


class PersonFile(
    ChecksummedFile, erasing=Erasing.WITH_FILES, respondent=Reference.STAYS
):
    """A request for the file; `reports.person_files` makes it."""

    FOLDER, JOB = "person-files", "people.stored"
    MADE, DELETED = "make a file about a person", "delete a file about a person"

    # Without a constraint, as in all tables that refer to many respondents.
    respondent = models.ForeignKey(
        Respondent,
        on_delete=models.CASCADE,
        related_name="+",
        db_constraint=False,
    )
    # Who is to get it, by a request of this day.
    requested_by = models.CharField(max_length=16, choices=OptOut.RequestedBy)
    requested_on = models.DateField()

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=COMPLETE_OR_NONE,
                name="a_persons_file_has_a_checksum_and_an_end",
            ),
        )
        indexes = (
            # Files to delete: the few that still have one.
            models.Index(
                fields=("expires_at",),
                condition=~Q(file_name=""),
                name="person_files_with_a_file",
            ),
        )

    def __str__(self) -> str:
        return f"file about respondent {self.respondent_id}"

    def audit_place(self) -> AuditPlace:
        return {"school": self.respondent.school}

    def audit_facts(self) -> dict[str, object]:
        return {
            "respondent": self.respondent_id,
            "requested by": self.requested_by,
            "requested on": self.requested_on.isoformat(),
        }
